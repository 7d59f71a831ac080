package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// call asks the API as the operator.
func call(verb, path string, body, answer any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(verb, os.Getenv("BASE_URL")+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPERATOR_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", verb, path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

type object = map[string]any

// claims of a token, unverified.
func claims(token string) (issuer, subject string, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", fmt.Errorf("the upstream token is none")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", "", err
	}
	var read struct{ Iss, Sub string }
	err = json.Unmarshal(payload, &read)
	return read.Iss, read.Sub, err
}

// world makes an organization and an identity in it that may push; their UIDPs.
func world(upstream string) (organization, identity string) {
	issuer, subject, err := claims(upstream)
	must("the upstream token is read", err)
	var made struct{ Uid string }
	must("an organization", call("POST", "/iam/v2/groups", object{"name": "registry conformance"}, &made))
	organization = made.Uid
	robot := object{"name": "robot", "claimMatch": object{"issuer": issuer, "subject": subject}}
	must("an identity", call("POST", "/iam/v2/identities/"+organization, robot, &made))
	identity = made.Uid
	var roles struct{ Roles []struct{ Uid string } }
	must("its role is found", call("GET", "/iam/v2/roles?name=registry.push", nil, &roles))
	check("once", len(roles.Roles) == 1)
	binding := object{"identityUid": identity, "roleUid": roles.Roles[0].Uid}
	must("it is bound", call("POST", "/iam/v2/roleBindings/"+organization, binding, &made))
	return organization, identity
}

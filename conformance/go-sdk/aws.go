package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"chainguard.dev/sdk/auth"
	awsauth "chainguard.dev/sdk/auth/aws"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	"chainguard.dev/sdk/sts"
	"github.com/aws/aws-sdk-go-v2/aws"
	"google.golang.org/grpc/codes"
)

const (
	awsAccount = "123456789012"
	awsArn     = "arn:aws:iam::123456789012:user/conformance"
	awsKey     = "AKIDCONFORMANCE"
)

// standIn answers GetCallerIdentity as AWS would for one access key. It takes
// the signature for good: what is tested is who may use whose answer.
func standIn(address string) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.Method == http.MethodPost && r.Host == "sts.amazonaws.com" &&
			r.URL.RequestURI() == "/?Action=GetCallerIdentity&Version=2011-06-15" &&
			r.Header.Get("Accept") == "application/json" && r.Header.Get("X-Amz-Security-Token") == "session"
		if !asked || !strings.Contains(r.Header.Get("Authorization"), "Credential="+awsKey+"/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		result := map[string]string{"Account": awsAccount, "Arn": awsArn, "UserId": "AIDACONFORMANCE"}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"GetCallerIdentityResponse": map[string]any{"GetCallerIdentityResult": result},
		})
	})}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func awsIdentities(ctx context.Context, w *world) {
	if w.sts == "" {
		fmt.Println("  left out: STS_ADDRESS says not where the server looks for AWS")
		return
	}
	server := must(standIn(w.sts))
	defer server.Close()
	create := func(arn string) string {
		made := must(w.operator.IAM().IdentitiesService().CreateIdentity(ctx, &iam.CreateIdentityRequest{
			Parent: w.org,
			Identity: &iam.Identity{Name: unique("aws"), Relationship: &iam.Identity_AwsIdentity{AwsIdentity: &iam.Identity_AWSIdentity{
				AwsAccount: awsAccount,
				AwsArn:     &iam.Identity_AWSIdentity_ArnPattern{ArnPattern: arn},
			}}},
		}))
		return made.GetUid()
	}
	identity := create("arn:aws:iam::123456789012:user/.*")
	sign := func(key, audience, identity string) string {
		credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret", SessionToken: "session"}
		return must(awsauth.GenerateToken(ctx, credentials, audience, identity))
	}
	swap := func(token, identity string) (sts.TokenPair, error) {
		return sts.ExchangePair(ctx, w.base, w.base, token, sts.WithIdentity(identity))
	}
	check("a request that the SDK signed is exchanged", func() error {
		pair := must(swap(sign(awsKey, w.base, identity), identity))
		_, subject, err := auth.ExtractIssuerAndSubject(pair.AccessToken)
		same(subject, identity, "sub")
		return err
	})
	check("over HTTP/1 as well", func() error {
		exchanger := sts.NewHTTP1DowngradeExchanger(w.base, w.base, sts.WithIdentity(identity))
		_, err := exchanger.Exchange(ctx, sign(awsKey, w.base, identity))
		return err
	})
	check("a signature that AWS refuses", func() error {
		_, err := swap(sign("AKIDOTHER", w.base, identity), identity)
		refused(err, codes.Unauthenticated)
		return nil
	})
	check("a request for another issuer, or another identity", func() error {
		_, err := swap(sign(awsKey, "https://issuer.enforce.dev", identity), identity)
		refused(err, codes.Unauthenticated)
		_, err = swap(sign(awsKey, w.base, w.identity), identity)
		refused(err, codes.Unauthenticated)
		return nil
	})
	check("a signer whom the identity does not accept", func() error {
		other := create("arn:aws:iam::123456789012:role/.*")
		_, err := swap(sign(awsKey, w.base, other), other)
		refused(err, codes.PermissionDenied)
		return nil
	})
	check("an identity that is none of AWS", func() error {
		_, err := swap(sign(awsKey, w.base, w.identity), w.identity)
		refused(err, codes.PermissionDenied)
		return nil
	})
}

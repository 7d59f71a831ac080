package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"chainguard.dev/sdk/events/registry"
)

// received is what the SDK's receiver says of a delivery.
type received struct {
	Type     string `json:"type"`
	Accepted bool   `json:"accepted"`
	// Forged says whether it also took the delivery with another body.
	Forged bool   `json:"forged"`
	Decode string `json:"decode,omitempty"`
}

// receive serves the SDK's receiver for a group, until the process is ended: its address goes to stderr, and a line of
// JSON for every delivery to stdout.
//
//	go-sdk receive GROUP
func receive(base, group string) error {
	s, err := newSink(context.Background(), base, group)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, s.URL)
	lines := json.NewEncoder(os.Stdout)
	for told := 0; ; told++ {
		one := s.next(told)
		forged, _ := s.offer(one.header, forge(one.body))
		line := received{Type: one.kind, Accepted: one.status == http.StatusOK, Forged: forged == http.StatusOK}
		if err := decoded(one); err != nil {
			line.Decode = err.Error()
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
}

// next returns the delivery of that number, once it is there.
func (s *sink) next(number int) captured {
	for {
		s.mu.Lock()
		came := s.came
		s.mu.Unlock()
		if len(came) > number {
			return came[number]
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// forge adds a field to a body, and leaves the body as it is.
func forge(body []byte) []byte {
	return slices.Concat(bytes.TrimSuffix(body, []byte("}")), []byte(`,"x":1}`))
}

// decoded says what is wrong with the body of a delivery: pulls and pushes are structs of the SDK, others its messages.
func decoded(one captured) error {
	switch one.kind {
	case registry.PulledEventType:
		return filled[registry.PullEvent](one)
	case registry.PushedEventType:
		return filled[registry.PushEvent](one)
	}
	return one.decode
}

// filled says what a struct of the SDK does not find in a body.
func filled[T registry.PullEvent | registry.PushEvent](one captured) error {
	var occurrence struct {
		Actor json.RawMessage `json:"actor"`
		Body  T               `json:"body"`
	}
	if err := json.Unmarshal(one.body, &occurrence); err != nil {
		return err
	}
	switch body := any(occurrence.Body).(type) {
	case registry.PullEvent:
		return complete(body.Repository, body.RepoID, body.Digest, body.Type, body.RemoteAddress, body.UserAgent, body.Method, body.When.String())
	case registry.PushEvent:
		return complete(body.Repository, body.RepoID, body.Digest, body.Type, body.RemoteAddress, body.UserAgent, body.DisplayName, body.When.String())
	}
	return nil
}

func complete(values ...string) error {
	for at, value := range values {
		if cmp.Or(value, "0000-00-00T00:00:00") == "0000-00-00T00:00:00" {
			return fmt.Errorf("field %d is not there", at)
		}
	}
	return nil
}

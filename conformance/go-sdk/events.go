package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"chainguard.dev/sdk/events"
	"chainguard.dev/sdk/events/receiver"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	eventsv1 "chainguard.dev/sdk/proto/platform/events/v1"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// captured is a delivery as it came, with what the SDK's receiver said of it.
type captured struct {
	header http.Header
	body   []byte
	status int
	answer string
	kind   string
	decode error
}

// sink serves the SDK's receiver, unmodified, and notes every delivery.
type sink struct {
	mu   sync.Mutex
	came []captured
	last error
	*httptest.Server
	handler http.Handler
}

func newSink(ctx context.Context, issuer, group string) (*sink, error) {
	s := &sink{}
	handler, err := receiver.NewHTTPHandler(ctx, issuer, group, func(_ context.Context, event cloudevents.Event) error {
		// The body's type is in the event and the SDK knows it: or it is no event for its users.
		_, err := events.Decode(event)
		s.last = err
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.handler = handler
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = nil
		status, answer := s.offer(r.Header, body)
		s.came = append(s.came, captured{r.Header.Clone(), body, status, answer, r.Header.Get("Ce-Type"), s.last})
		w.WriteHeader(status)
	}))
	return s, nil
}

// offer hands a delivery to the receiver.
func (s *sink) offer(header http.Header, body []byte) (int, string) {
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header = header.Clone()
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

// wait returns the deliveries once they are as many.
func (s *sink) wait(count int) []captured {
	for range 200 {
		s.mu.Lock()
		came := append([]captured(nil), s.came...)
		s.mu.Unlock()
		if len(came) >= count {
			return came
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic(wrong{fmt.Errorf("%d of %d deliveries came", len(s.came), count)})
}

func deliveries(ctx context.Context, w *world) {
	parent := w.group(ctx, w.org, "events")
	owners(ctx, w, parent)
	s := must(newSink(ctx, w.base, parent))
	defer s.Close()
	hooks := subscriptions(ctx, w)
	subscription := must(hooks.Create(ctx, &eventsv1.CreateSubscriptionRequest{
		ParentId: parent, Subscription: &eventsv1.Subscription{Sink: s.URL},
	}))
	other := w.group(ctx, w.org, "elsewhere")
	elsewhere := must(newSink(ctx, w.base, other))
	defer elsewhere.Close()

	kinds := changes(ctx, w, hooks, parent)
	check("the SDK's receiver takes every event", func() error {
		came := s.wait(len(kinds))
		for at, one := range came[:len(kinds)] {
			that(one.status == http.StatusOK, "%s is answered with %d: %s", one.kind, one.status, one.answer)
			that(one.decode == nil, "%s does not decode: %v", one.kind, one.decode)
			same(one.kind, "dev.chainguard.api."+kinds[at]+".v1", "the type")
		}
		return nil
	})
	check("a changed body, another group's token, a changed token and none are refused", func() error {
		one := s.wait(1)[0]
		with := func(value string) http.Header {
			header := one.header.Clone()
			header.Set("Authorization", value)
			return header
		}
		token := one.header.Get("Authorization")
		status, _ := s.offer(one.header, one.body)
		same(status, http.StatusOK, "the answer to the same again")
		status, _ = s.offer(one.header, forge(one.body))
		same(status, http.StatusForbidden, "the answer to another body")
		status, _ = elsewhere.offer(one.header, one.body)
		same(status, http.StatusForbidden, "the answer of another group's receiver")
		status, _ = s.offer(with(token[:len(token)-8]+"AAAAAAAA"), one.body)
		same(status, http.StatusForbidden, "the answer to another signature")
		status, _ = s.offer(with("Bearer "+w.token), one.body)
		same(status, http.StatusForbidden, "the answer to an access token")
		status, _ = s.offer(with(s.wait(2)[1].header.Get("Authorization")), one.body)
		same(status, http.StatusForbidden, "the answer to another event's token")
		without := one.header.Clone()
		without.Del("Authorization")
		status, _ = s.offer(without, one.body)
		same(status, http.StatusUnauthorized, "the answer without a token")
		return nil
	})
	check("the token covers each Ce header and the sink", func() error {
		return covers(s.wait(1)[0], s.URL)
	})
	check("the webhook's token opens nothing here", func() error {
		token := strings.TrimPrefix(s.wait(1)[0].header.Get("Authorization"), "Bearer ")
		request := must(http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/iam/v2/groups", nil))
		request.Header.Set("Authorization", "Bearer "+token)
		answer := must(http.DefaultClient.Do(request))
		defer answer.Body.Close()
		same(answer.StatusCode, http.StatusUnauthorized, "the status")
		return nil
	})
	check("a deleted subscription gets nothing more", func() error {
		must(hooks.Delete(ctx, &eventsv1.DeleteSubscriptionRequest{Id: subscription.GetId()}))
		time.Sleep(time.Second)
		before := len(s.wait(1))
		w.group(ctx, parent, "late")
		time.Sleep(time.Second)
		same(len(s.wait(1)), before, "the number of deliveries")
		return nil
	})
}

// subscriptions is the client that the SDK's collections of clients leave out.
func subscriptions(ctx context.Context, w *world) eventsv1.SubscriptionsClient {
	target := strings.TrimPrefix(w.base, "http://")
	return eventsv1.NewSubscriptionsClient(must(grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(bearer(ctx, w.token)))))
}

// owners makes two owners of the group: provisioning wants so many.
func owners(ctx context.Context, w *world, group string) {
	services := w.v2.IAM()
	second := must(services.IdentitiesService().CreateIdentity(ctx, &iam.CreateIdentityRequest{
		Parent: w.org, Identity: claimMatch(unique("owner"), "https://issuer.example.com", unique("owner")),
	}))
	for _, owner := range []string{w.identity, second.GetUid()} {
		must(services.RoleBindingsService().CreateRoleBinding(ctx, &iam.CreateRoleBindingRequest{
			Parent: group, RoleBinding: &iam.RoleBinding{IdentityUid: owner, RoleUid: w.owner},
		}))
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"chainguard.dev/sdk/auth"
	"chainguard.dev/sdk/auth/deviceflow"
	"chainguard.dev/sdk/auth/headless"
	"chainguard.dev/sdk/auth/login"
	"chainguard.dev/sdk/auth/token"
	"chainguard.dev/sdk/proto/platform"
	authv1 "chainguard.dev/sdk/proto/platform/auth/v1"
	"chainguard.dev/sdk/sts"
	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// signIn drives one of the SDK's sign-in helpers. What a browser has to open goes to stderr; the identity that is
// signed in at the end goes to stdout as JSON.
//
//	go-sdk signin login|headless|device|cache
func signIn(base, kind string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var access, refresh string
	var err error
	switch kind {
	case "login":
		access, refresh, err = login.Login(ctx, login.WithIssuer(base), login.WithClientID("auth0"),
			login.WithAudience([]string{base}), login.WithCreateRefreshToken(), login.WithSkipBrowser(),
			login.WithInviteCode(os.Getenv("INVITE")))
	case "headless":
		access, err = headlessly(ctx, base)
	case "device":
		access, err = onDevice(ctx, base)
	case "cache":
		return fromCache(ctx, base)
	default:
		return fmt.Errorf("unknown kind %q", kind)
	}
	if err != nil {
		return err
	}
	if err := token.Save([]byte(access), token.KindAccess, base); err != nil {
		return err
	}
	if refresh != "" {
		if err := refreshed(ctx, base, refresh); err != nil {
			return err
		}
	}
	return fromCache(ctx, base)
}

// refreshed exchanges a refresh token and keeps the pair.
func refreshed(ctx context.Context, base, refresh string) error {
	if _, err := auth.ExtractRefreshExpiry(refresh); err != nil {
		return fmt.Errorf("the refresh token's expiry: %w", err)
	}
	access, next, err := sts.New(base, base).Refresh(ctx, refresh)
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	if next == "" || next == refresh {
		return errors.New("the refresh token was not rotated")
	}
	if err := token.Save([]byte(access), token.KindAccess, base); err != nil {
		return err
	}
	return token.Save([]byte(next), token.KindRefresh, base)
}

// fromCache calls the API with the kept token.
func fromCache(ctx context.Context, base string) error {
	if left := token.RemainingLife(token.KindAccess, base, time.Minute); left <= 0 {
		return errors.New("the cache holds no token that lasts for a minute")
	}
	kept, err := token.Load(token.KindAccess, base)
	if err != nil {
		return err
	}
	clients, err := platform.NewOIDCClients(ctx, base, auth.NewFromToken(ctx, "Bearer "+string(kept), false))
	if err != nil {
		return err
	}
	defer clients.Close()
	who, err := clients.Auth().Validate(ctx, &emptypb.Empty{})
	if err != nil {
		return err
	}
	_, err = token.Load(token.KindRefresh, base)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"identity": who.Subject, "email": who.Email, "refresh": err == nil,
	})
}

func headlessly(ctx context.Context, base string) (string, error) {
	key, err := headless.GenerateKeyPair()
	if err != nil {
		return "", err
	}
	code := headless.NewCode(key.PublicKey())
	address, err := login.BuildHeadlessURL(login.WithIssuer(base), login.WithHeadlessCode(string(code)))
	if err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, address)
	clients, err := platform.NewOIDCClients(ctx, base, nil)
	if err != nil {
		return "", err
	}
	defer clients.Close()
	for {
		session, err := clients.Auth().GetHeadlessSession(ctx, &authv1.GetHeadlessSessionRequest{Code: string(code)})
		if status.Code(err) == codes.NotFound {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		if err != nil {
			return "", err
		}
		idToken, err := headless.DecryptIDToken(session, key)
		if err != nil {
			return "", err
		}
		return exchanged(ctx, base, string(idToken))
	}
}

func onDevice(ctx context.Context, base string) (string, error) {
	provider, err := oidc.NewProvider(ctx, base)
	if err != nil {
		return "", err
	}
	getter := deviceflow.NewTokenGetter(base, deviceflow.WithMessagePrinter(func(text string) { fmt.Fprintln(os.Stderr, text) }))
	got, err := getter.GetIDToken(provider, oauth2.Config{ClientID: "go-sdk", Scopes: []string{"openid", "email"}})
	if err != nil {
		return "", err
	}
	return exchanged(ctx, base, got.RawString)
}

func exchanged(ctx context.Context, base, idToken string) (string, error) {
	answer, err := sts.New(base, base).Exchange(ctx, idToken)
	if err != nil {
		return "", fmt.Errorf("exchange: %w", err)
	}
	return answer.AccessToken, nil
}

// Command go-sdk drives a running server with the public Go SDK of the
// Platform API, unmodified: its clients, its token exchanger, its iterators.
//
//	go-sdk -base-url URL -upstream-token TOKEN -operator-token TOKEN [-sts-address ADDRESS]
//	go-sdk -base-url URL signin login|headless|device|cache
//
// Each flag falls back to an environment variable: BASE_URL, UPSTREAM_TOKEN,
// OPERATOR_TOKEN, STS_ADDRESS. The last is where the server looks for AWS; without
// it the AWS identities are left out.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	base := flag.String("base-url", os.Getenv("BASE_URL"), "base URL of the server")
	upstream := flag.String("upstream-token", os.Getenv("UPSTREAM_TOKEN"), "a workload's token for the server")
	operator := flag.String("operator-token", os.Getenv("OPERATOR_TOKEN"), "an operator's token")
	awsSts := flag.String("sts-address", os.Getenv("STS_ADDRESS"), "host and port that the server asks in place of AWS STS")
	flag.Parse()
	if mode := map[string]func(string, string) error{"signin": signIn, "receive": receive}[flag.Arg(0)]; mode != nil && flag.NArg() == 2 {
		if err := mode(*base, flag.Arg(1)); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL ", err)
			os.Exit(1)
		}
		return
	}
	if *base == "" || *upstream == "" || *operator == "" {
		flag.Usage()
		os.Exit(2)
	}
	// A gRPC client waits for a server that is not there: end it some time.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	setup, done := context.WithTimeout(ctx, 30*time.Second)
	defer done()
	w, err := newWorld(setup, *base, *upstream, *operator)
	if err != nil {
		fmt.Printf("FAIL  setting up: %v\n\n0 passed, 1 failed\n", err)
		os.Exit(1)
	}
	w.sts = *awsSts
	for _, suite := range []struct {
		title string
		run   func(context.Context, *world)
	}{
		{"Token exchange", exchange},
		{"AWS identities", awsIdentities},
		{"Claims", claims},
		{"v2 groups, roles, identities, bindings", iamV2},
		{"v2 repositories", registryV2},
		{"v1 clients", platformV1},
		{"Vulnerabilities, advisories, libraries", dataDomains},
		{"Iterators", iterators},
		{"Events", deliveries},
		{"Errors", statuses},
	} {
		fmt.Printf("\n%s\n", suite.title)
		if err := guarded(func() error { suite.run(ctx, w); return nil }); err != nil {
			check("the rest of this part", func() error { return err })
		}
	}
	w.close(ctx)
	os.Exit(finish())
}

package main

import (
	"context"
	"strings"

	clients "chainguard.dev/sdk/proto/chainguard/platform/clients/v2"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	registry "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	v1 "chainguard.dev/sdk/proto/platform/registry/v1"
	"chainguard.dev/sdk/uidp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
)

func statuses(ctx context.Context, w *world) {
	repos, groups := w.v2.Registry().ReposService(), w.v2.IAM().GroupsService()
	absent := uidp.NewUIDP(uidp.UIDP(w.org)).String()

	check("NOT_FOUND carries ErrorInfo and ResourceInfo", func() error {
		_, err := repos.GetRepo(ctx, &registry.GetRepoRequest{Uid: absent})
		details := refused(err, codes.NotFound)
		info := detail[*errdetails.ErrorInfo](details)
		same([]string{info.GetReason(), info.GetDomain()}, []string{"NOT_FOUND", "registry.chainguard.dev"}, "reason and domain")
		resource := detail[*errdetails.ResourceInfo](details)
		same([]string{resource.GetResourceType(), resource.GetResourceName()}, []string{"registry.chainguard.dev/Repo", absent}, "type and name")
		return nil
	})
	check("INVALID_ARGUMENT carries BadRequest, every field at once", func() error {
		_, err := repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: &registry.Repo{Name: "Bad!Name", Aliases: []string{"no-colon"}}})
		bad := detail[*errdetails.BadRequest](refused(err, codes.InvalidArgument))
		var fields []string
		for _, violation := range bad.GetFieldViolations() {
			fields = append(fields, violation.GetField())
		}
		all := strings.Join(fields, " ")
		that(strings.Contains(all, "name") && strings.Contains(all, "alias"), "violations of %v", fields)
		return nil
	})
	check("a blocked delete carries PreconditionFailure", func() error {
		group := w.group(ctx, w.org, "blocked")
		w.repo(ctx, group, unique("inside"))
		_, err := groups.DeleteGroup(ctx, &iam.DeleteGroupRequest{Uid: group})
		failure := detail[*errdetails.PreconditionFailure](refused(err, codes.FailedPrecondition))
		same(failure.GetViolations()[0].GetType(), "RESOURCE_NOT_EMPTY", "violation")
		return nil
	})
	check("PERMISSION_DENIED carries ErrorInfo", func() error {
		_, err := repos.GetRepo(ctx, &registry.GetRepoRequest{Uid: uidp.NewUIDP("").NewChild().String()})
		info := detail[*errdetails.ErrorInfo](refused(err, codes.PermissionDenied))
		same(info.GetReason(), "PERMISSION_DENIED", "reason")
		return nil
	})
	check("a missing parent is NOT_FOUND and named", func() error {
		_, err := repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: absent, Repo: &registry.Repo{Name: unique("orphan")}})
		resource := detail[*errdetails.ResourceInfo](refused(err, codes.NotFound))
		same([]string{resource.GetResourceType(), resource.GetResourceName()}, []string{"iam.chainguard.dev/Group", absent}, "type and name")
		return nil
	})
	check("a name that is taken is ALREADY_EXISTS", func() error {
		made := w.repo(ctx, w.org, unique("taken"))
		_, err := repos.CreateRepo(ctx, &registry.CreateRepoRequest{Parent: w.org, Repo: &registry.Repo{Name: made.GetName()}})
		detail[*errdetails.ResourceInfo](refused(err, codes.AlreadyExists))
		return nil
	})
	check("UNAUTHENTICATED without a token and with a bad one", func() error {
		for _, token := range []string{"", "garbage", w.upstream} {
			api := must(clients.NewClients(ctx, w.base, agent, bearer(ctx, token)))
			_, err := api.IAM().GroupsService().ListGroups(ctx, &iam.ListGroupsRequest{})
			refused(err, codes.Unauthenticated)
			_ = api.Close()
		}
		return nil
	})
	check("an empty or malformed uid is INVALID_ARGUMENT", func() error {
		for _, uid := range []string{"", "not-a-uidp", w.org + "/", "/" + w.org} {
			_, err := groups.GetGroup(ctx, &iam.GetGroupRequest{Uid: uid})
			refused(err, codes.InvalidArgument)
		}
		return nil
	})
	check("a page token that is none is INVALID_ARGUMENT", func() error {
		_, err := repos.ListRepos(ctx, &registry.ListReposRequest{PageToken: "nonsense"})
		info := detail[*errdetails.ErrorInfo](refused(err, codes.InvalidArgument))
		same(info.GetReason(), "PAGE_TOKEN_INVALID", "reason")
		return nil
	})
	check("v1 errors are bare", func() error {
		_, err := w.v1.Registry().Registry().DeleteRepo(ctx, &v1.DeleteRepoRequest{Id: absent})
		same(len(refused(err, codes.NotFound)), 0, "number of details")
		return nil
	})
	check("a very long user agent is let through", func() error {
		api := must(clients.NewClients(ctx, w.base, strings.Repeat("agent/1.0 ", 3000), bearer(ctx, w.token)))
		defer api.Close()
		_, err := api.IAM().GroupsService().GetGroup(ctx, &iam.GetGroupRequest{Uid: w.org})
		return err
	})
}

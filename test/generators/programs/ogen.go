package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/google/uuid"

	"example.com/generated/api"
)

type credentials struct{}

func (credentials) ClientCredentials(context.Context, api.OperationName) (api.ClientCredentials, error) {
	return api.ClientCredentials{Token: os.Getenv("TOKEN")}, nil
}

func (credentials) Session(context.Context, api.OperationName) (api.Session, error) {
	return api.Session{}, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	client := must(api.NewClient(os.Getenv("BASE_URL"), credentials{}))
	id := func(name string) uuid.UUID { return uuid.MustParse(os.Getenv(name)) }
	oidcLink := func(link uuid.UUID) api.GetUserAuthenticationOidcProfileInfoRes {
		params := api.GetUserAuthenticationOidcProfileInfoParams{RealmID: id("REALM"), UserID: id("USER"), ID: link}
		return must(client.GetUserAuthenticationOidcProfileInfo(ctx, params))
	}

	result := map[string][]any{}
	if found, ok := oidcLink(id("OIDC_LINK")).(*api.GetUserAuthenticationOidcProfileInfoOKHeaders); ok {
		result["oidc"] = []any{200, found.Response.Data.Subject}
	}
	passwordLink := must(client.GetUserAuthenticationPasswordProfileInfo(ctx,
		api.GetUserAuthenticationPasswordProfileInfoParams{RealmID: id("REALM"), UserID: id("USER"), ID: id("PASSWORD_LINK")}))
	if found, ok := passwordLink.(*api.UserAuthenticationPasswordProfileInfoHeaders); ok {
		result["password"] = []any{200, found.Response.Data.Username}
	}
	jane := &api.UserAuthenticationInfoCreate{Data: api.UserAuthenticationInfoCreateData{
		Type: "user_authentication_info", Name: "Jane Doe", Email: "jane@example.com",
	}}
	created := must(client.CreateUserAuthenticationInfo(ctx, jane, api.CreateUserAuthenticationInfoParams{RealmID: id("REALM")}))
	if user, ok := created.(*api.UserAuthenticationInfoHeaders); ok {
		result["created"] = []any{201, user.Response.Data.Name}
	}
	if absent, ok := oidcLink(id("USER")).(*api.NotFoundHeaders); ok {
		result["absent"] = []any{404, absent.Response.Errors[0].Title}
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}

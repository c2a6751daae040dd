package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/google/uuid"

	"example.com/generated/api"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		return nil
	}
	client := must(api.NewClientWithResponses(os.Getenv("BASE_URL"), api.WithRequestEditorFn(authorize)))
	id := func(name string) uuid.UUID { return uuid.MustParse(os.Getenv(name)) }
	realm, user := id("REALM"), id("USER")

	oidc := must(client.GetUserAuthenticationOidcProfileInfoWithResponse(ctx, realm, user, id("OIDC_LINK"), nil))
	password := must(client.GetUserAuthenticationPasswordProfileInfoWithResponse(ctx, realm, user, id("PASSWORD_LINK"), nil))
	var body api.CreateUserAuthenticationInfoJSONRequestBody
	body.Data.Type = api.UserAuthenticationInfoCreateDataTypeUserAuthenticationInfo
	body.Data.Name = "Jane Doe"
	body.Data.Email = "jane@example.com"
	created := must(client.CreateUserAuthenticationInfoWithResponse(ctx, realm, nil, body))
	absent := must(client.GetUserAuthenticationOidcProfileInfoWithResponse(ctx, realm, user, user, nil))

	result := map[string][]any{
		"oidc":     {oidc.StatusCode(), oidc.JSON200.Data.Subject},
		"password": {password.StatusCode(), password.JSON200.Data.Username},
		"created":  {created.StatusCode(), created.JSON201.Data.Name},
		"absent":   {absent.StatusCode(), absent.JSON404.Errors[0].Title},
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}

import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.ApiResponse;
import org.openapitools.client.JSON;
import org.openapitools.client.api.UserAuthenticationInfoApi;
import org.openapitools.client.api.UserAuthenticationOidcProfileInfoApi;
import org.openapitools.client.api.UserAuthenticationPasswordProfileInfoApi;
import org.openapitools.client.model.ErrorResponse;
import org.openapitools.client.model.UserAuthenticationInfo;
import org.openapitools.client.model.UserAuthenticationInfoCreate;
import org.openapitools.client.model.UserAuthenticationInfoCreateData;
import org.openapitools.client.model.UserAuthenticationOidcProfileInfo;
import org.openapitools.client.model.UserAuthenticationPasswordProfileInfo;

public class Program {
  private static UUID id(String name) {
    return UUID.fromString(System.getenv(name));
  }

  public static void main(String[] words) throws Exception {
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("BASE_URL"));
    client.setAccessToken(System.getenv("TOKEN"));
    UUID realm = id("REALM");
    UUID user = id("USER");
    UserAuthenticationOidcProfileInfoApi links = new UserAuthenticationOidcProfileInfoApi(client);

    ApiResponse<UserAuthenticationOidcProfileInfo> oidc =
        links.getUserAuthenticationOidcProfileInfoWithHttpInfo(realm, user, id("OIDC_LINK"), null, null);
    ApiResponse<UserAuthenticationPasswordProfileInfo> password =
        new UserAuthenticationPasswordProfileInfoApi(client)
            .getUserAuthenticationPasswordProfileInfoWithHttpInfo(realm, user, id("PASSWORD_LINK"), null, null);
    UserAuthenticationInfoCreateData jane =
        new UserAuthenticationInfoCreateData()
            .type(UserAuthenticationInfoCreateData.TypeEnum.USER_AUTHENTICATION_INFO)
            .name("Jane Doe")
            .email("jane@example.com");
    ApiResponse<UserAuthenticationInfo> created =
        new UserAuthenticationInfoApi(client)
            .createUserAuthenticationInfoWithHttpInfo(
                realm, new UserAuthenticationInfoCreate().data(jane), null, null);

    List<Object> absent = List.of();
    try {
      links.getUserAuthenticationOidcProfileInfo(realm, user, user, null, null);
    } catch (ApiException error) {
      ErrorResponse answer = ErrorResponse.fromJson(error.getResponseBody());
      absent = List.of(error.getCode(), answer.getErrors().get(0).getTitle());
    }
    System.out.println(
        JSON.getGson()
            .toJson(
                Map.of(
                    "oidc", List.of(oidc.getStatusCode(), oidc.getData().getData().getSubject()),
                    "password", List.of(password.getStatusCode(), password.getData().getData().getUsername()),
                    "created", List.of(created.getStatusCode(), created.getData().getData().getName()),
                    "absent", absent)));
    System.exit(0);
  }
}

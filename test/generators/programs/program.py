import json
import os
from uuid import UUID

from generated import AuthenticatedClient
from generated.api.user_authentication_info import create_user_authentication_info
from generated.api.user_authentication_oidc_profile_info import get_user_authentication_oidc_profile_info
from generated.api.user_authentication_password_profile_info import (
    get_user_authentication_password_profile_info,
)
from generated.models import (
    ErrorResponse,
    UserAuthenticationInfo,
    UserAuthenticationInfoCreate,
    UserAuthenticationInfoCreateData,
    UserAuthenticationOidcProfileInfo,
    UserAuthenticationPasswordProfileInfo,
)

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["TOKEN"])
realm, user = UUID(os.environ["REALM"]), UUID(os.environ["USER"])

oidc = get_user_authentication_oidc_profile_info.sync_detailed(
    realm, user, UUID(os.environ["OIDC_LINK"]), client=client
)
password = get_user_authentication_password_profile_info.sync_detailed(
    realm, user, UUID(os.environ["PASSWORD_LINK"]), client=client
)
jane = UserAuthenticationInfoCreateData(
    type_="user_authentication_info", name="Jane Doe", email="jane@example.com"
)
created = create_user_authentication_info.sync_detailed(
    realm, client=client, body=UserAuthenticationInfoCreate(data=jane)
)
absent = get_user_authentication_oidc_profile_info.sync_detailed(realm, user, user, client=client)

assert isinstance(oidc.parsed, UserAuthenticationOidcProfileInfo)
assert isinstance(password.parsed, UserAuthenticationPasswordProfileInfo)
assert isinstance(created.parsed, UserAuthenticationInfo)
assert isinstance(absent.parsed, ErrorResponse)
print(
    json.dumps(
        {
            "oidc": [oidc.status_code, oidc.parsed.data.subject],
            "password": [password.status_code, password.parsed.data.username],
            "created": [created.status_code, created.parsed.data.name],
            "absent": [absent.status_code, absent.parsed.errors[0].title],
        }
    )
)

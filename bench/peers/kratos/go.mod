module peer

go 1.23

require github.com/ory/kratos v1.3.1

// The replacements of the module's own go.mod, which a dependent module does not inherit.
replace (
	github.com/go-swagger/go-swagger => github.com/aeneasr/go-swagger v0.19.1-0.20241013070044-bccef3a12e26
	github.com/gobuffalo/pop/v6 => github.com/ory/pop/v6 v6.2.0
	github.com/gorilla/sessions => github.com/ory/sessions v1.2.2-0.20220110165800-b09c17334dc2
	github.com/mattn/go-sqlite3 => github.com/mattn/go-sqlite3 v1.14.22
)

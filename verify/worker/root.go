package worker

import _ "embed"

// publicGood is the trusted root of Sigstore's public instance, as published with
// its TUF repository (Apache-2.0). It is data: a newer one is given by file.
//
//go:embed trustedroot/public-good.json
var publicGood []byte

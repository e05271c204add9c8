package verify

// A Network is how the worker reaches others. Its own environment is empty, so a request
// that needs a connection says so; one without a Network opens none.
type Network struct {
	Roots   string `json:"roots,omitempty"`   // PEM, the certificate authorities of servers; "": the system's
	Proxy   string `json:"proxy,omitempty"`   // as HTTPS_PROXY; "": none
	NoProxy string `json:"noProxy,omitempty"` // as NO_PROXY
}

// The codes of refusals that have to do with connections.
const (
	CodeNetworkRequest     Code = "network.request"     // a URL, proxy or certificate authority that cannot be used
	CodeNetworkUnreachable Code = "network.unreachable" // no connection, or one that broke off
	CodeNetworkTimeout     Code = "network.timeout"     // no whole answer in time
	CodeNetworkTLS         Code = "network.tls"         // the server does not prove who it is
	CodeNetworkRedirect    Code = "network.redirect"    // it points to where nobody may be led
	CodeNetworkStatus      Code = "network.status"      // it answers with an error
	CodeNetworkAnswer      Code = "network.answer"      // its answer cannot be read
	CodeNetworkTooLarge    Code = "network.too_large"   // its answer is larger than may be
)

package worker

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// audience is whom an identity token must be for, to be accepted by Sigstore's public
// instance.
const audience = "sigstore"

// An identityToken is a JWT, whose claims nobody has checked: that is the certificate
// authority's business.
type identityToken struct {
	text   string
	claims claims
}

type claims struct {
	Subject  string    `json:"sub"`
	Email    string    `json:"email"`
	Verified any       `json:"email_verified"`
	Audience audiences `json:"aud"`
	Expires  float64   `json:"exp"` // Unix time
}

// audiences is one audience or a list of them.
type audiences []string

func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(text, &list)
	*a = list
	return err
}

// readToken looks at a token, so that one which cannot be accepted is not sent. No error
// quotes it.
func readToken(text string, now time.Time) (*identityToken, error) {
	malformed := func(why string) error {
		return refuse(verify.CodeTokenMalformed, "the identity token %s", why)
	}
	parts := strings.Split(text, ".")
	switch {
	case text == "":
		return nil, malformed("is empty")
	case len(text) > verify.MaxToken:
		return nil, malformed("is too long")
	case len(parts) != 3 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, malformed("is no JWT: three parts with a dot between each two are wanted")
	}
	said, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, malformed("is no JWT: its claims are not base64url")
	}
	t := &identityToken{text: text}
	if err := json.Unmarshal(said, &t.claims); err != nil {
		return nil, malformed("is no JWT: its claims cannot be read")
	}
	if t.claims.Subject == "" && t.claims.Email == "" {
		return nil, malformed("names nobody: it has neither a subject nor an address")
	}
	const tolerance = time.Minute // between two clocks
	if end := time.Unix(int64(t.claims.Expires), 0).UTC(); t.claims.Expires != 0 && !now.IsZero() && now.Add(-tolerance).After(end) {
		return nil, refuse(verify.CodeTokenExpired, "the identity token expired at %s; get a new one", end.Format(time.RFC3339))
	}
	return t, nil
}

// note is what may be the reason where a certificate authority refuses the token.
func (t *identityToken) note() string {
	if slices.Contains(t.claims.Audience, audience) {
		return ""
	}
	return "; the token is not for the audience " + audience
}

// ambientToken fetches the token of a job of GitHub Actions.
func ambientToken(a verify.AmbientToken, client *http.Client) (string, error) {
	u, err := parseURL(a.URL)
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Set("audience", audience)
	u.RawQuery = query.Encode()
	request, err := http.NewRequest(http.MethodGet, u.String(), nil)
	if err != nil {
		return "", refuse(verify.CodeNetworkRequest, "%s cannot be asked", place(u))
	}
	request.Header.Set("Authorization", "Bearer "+a.Token)
	response, err := client.Do(request)
	if err != nil {
		return "", networkError(u, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", networkError(u, err)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Value == "" {
		return "", refuse(verify.CodeNetworkAnswer, "%s answers with no identity token", place(u))
	}
	return answer.Value, nil
}

package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// SASL says how to log in. Whatever is secret comes from a function that is asked
// again for each login, so it can be changed while the program runs.
type SASL struct {
	// Mechanism is "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512" or "OAUTHBEARER".
	Mechanism string
	// Credentials returns user and password; for OAUTHBEARER with a token
	// endpoint, client id and client secret.
	Credentials func(context.Context) (user, password string, err error)
	// OAuth is for OAUTHBEARER only.
	OAuth OAuth
}

// OAuth says where the token comes from; exactly one of Token and Endpoint is set.
type OAuth struct {
	// Token returns a token (RFC 7519).
	Token func(context.Context) (string, error)
	// Endpoint is asked for a token with the client-credentials grant (RFC 6749,
	// 4.4).
	Endpoint string
	Scopes   []string
	// Extensions are sent with the token (KIP-342).
	Extensions map[string]string
	// Client is used to ask Endpoint; nil means http.DefaultClient. Each call is
	// bounded by Config.RequestTimeout.
	Client *http.Client
}

var mechanisms = []string{sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512,
	sarama.SASLTypeOAuth}

func (s *SASL) validate(p *problems) {
	p.check(slices.Contains(mechanisms, s.Mechanism), "sasl.mechanism: %q is none of %q", s.Mechanism, mechanisms)
	if s.Mechanism != sarama.SASLTypeOAuth {
		p.check(s.Credentials != nil, "sasl: user and password are needed for %s", s.Mechanism)
		return
	}
	o := &s.OAuth
	p.check((o.Token != nil) != (o.Endpoint != ""), "sasl.oauth: exactly one of token and token endpoint is needed")
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		p.check(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "",
			"sasl.oauth.endpoint: %q is not an http(s) address", o.Endpoint)
		p.check(s.Credentials != nil, "sasl: client id and secret are needed for a token endpoint")
	}
}

// apply puts the login into sarama's configuration. PLAIN's password is fixed for
// the session; SCRAM and OAUTHBEARER are asked at each connect.
func (s *SASL) apply(ctx context.Context, c *sarama.Config, cfg *Config) error {
	c.Net.SASL.Enable, c.Net.SASL.Mechanism = true, sarama.SASLMechanism(s.Mechanism)
	if s.Mechanism == sarama.SASLTypeOAuth {
		c.Net.SASL.TokenProvider = tokenProvider{sasl: s, timeout: cfg.RequestTimeout}
		return nil
	}
	user, password, err := s.Credentials(ctx)
	if err != nil {
		return newError(AuthFailed, "reading the Kafka credentials", err)
	}
	if user == "" || password == "" {
		return newError(AuthFailed, "reading the Kafka credentials: user or password is empty", nil)
	}
	c.Net.SASL.User, c.Net.SASL.Password = user, password
	c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &scramClient{sasl: s, timeout: cfg.RequestTimeout}
	}
	return nil
}

// scramClient is one SCRAM exchange (RFC 5802) with credentials of this moment.
type scramClient struct {
	sasl    *SASL
	timeout time.Duration
	conv    *scram.ClientConversation
}

// Begin implements sarama.SCRAMClient; what sarama remembers is not used.
func (s *scramClient) Begin(_, _, authzID string) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	user, password, err := s.sasl.Credentials(ctx)
	if err != nil {
		return newError(AuthFailed, "reading the Kafka credentials", err)
	}
	hash := scram.SHA256
	if s.sasl.Mechanism == sarama.SASLTypeSCRAMSHA512 {
		hash = scram.SHA512
	}
	client, err := hash.NewClient(user, password, authzID)
	if err != nil {
		return newError(AuthFailed, "preparing "+s.sasl.Mechanism, err)
	}
	s.conv = client.NewConversation()
	return nil
}

// Step implements sarama.SCRAMClient.
func (s *scramClient) Step(challenge string) (string, error) {
	answer, err := s.conv.Step(challenge)
	if err != nil {
		return "", newError(AuthFailed, s.sasl.Mechanism+" exchange with the broker failed: check user and password", err)
	}
	return answer, nil
}

// Done implements sarama.SCRAMClient.
func (s *scramClient) Done() bool { return s.conv.Done() }

// tokenProvider answers sarama's wish for a token at each connect.
type tokenProvider struct {
	sasl    *SASL
	timeout time.Duration
}

// Token implements sarama.AccessTokenProvider.
func (t tokenProvider) Token() (*sarama.AccessToken, error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	token, err := t.sasl.token(ctx)
	if err != nil {
		return nil, newError(AuthFailed, "getting an OAUTHBEARER token", err)
	}
	if token == "" {
		return nil, newError(AuthFailed, "getting an OAUTHBEARER token: it is empty", nil)
	}
	return &sarama.AccessToken{Token: token, Extensions: t.sasl.OAuth.Extensions}, nil
}

func (s *SASL) token(ctx context.Context) (string, error) {
	if s.OAuth.Token != nil {
		return s.OAuth.Token(ctx)
	}
	return s.fetchToken(ctx)
}

// maxTokenAnswer bounds what is read of the endpoint's answer.
const maxTokenAnswer = 1 << 20

// fetchToken asks the endpoint. Its answer's body never gets into an error: it
// may hold the token.
func (s *SASL) fetchToken(ctx context.Context) (string, error) {
	id, secret, err := s.Credentials(ctx)
	if err != nil {
		return "", fmt.Errorf("reading client id and secret: %w", err)
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(s.OAuth.Scopes) > 0 {
		form.Set("scope", strings.Join(s.OAuth.Scopes, " "))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.OAuth.Endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("asking the token endpoint: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	client := s.OAuth.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking the token endpoint: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the token endpoint answered %s", resp.Status)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxTokenAnswer)).Decode(&answer); err != nil {
		return "", errors.New("the token endpoint's answer is not JSON with an access_token")
	}
	return answer.AccessToken, nil
}

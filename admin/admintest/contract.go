// Package admintest holds the answers of the admin server against its description.
package admintest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Contract is docs/openapi.yaml, to which the answers of handlers are held: also what
// is in an answer and not in the document is wrong.
type Contract struct {
	Doc    *openapi3.T
	router routers.Router
}

// Load reads the document.
func Load(path string) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	doc.Servers = nil
	for _, s := range doc.Components.Schemas {
		strict(s)
	}
	router, err := gorillamux.NewRouter(doc)
	return &Contract{doc, router}, err
}

// strict refuses properties that are not in the document, at all depths.
func strict(ref *openapi3.SchemaRef) {
	s := ref.Value
	if ref.Ref == "" && s.Type.Is("object") && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Has == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, p := range s.Properties {
		if p.Ref == "" {
			strict(p)
		}
	}
	if s.Items != nil && s.Items.Ref == "" {
		strict(s.Items)
	}
}

// Check holds one request with its body, and its answer, against the document.
func (c *Contract) Check(r *http.Request, body string, code int, header http.Header, answer []byte) error {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return nil
	}
	asked := r.Clone(r.Context())
	asked.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := c.router.FindRoute(asked)
	if err != nil {
		if code == http.StatusNotFound || code == http.StatusMethodNotAllowed {
			return nil
		}
		return fmt.Errorf("the document has no %s %s", r.Method, r.URL.Path)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && code < http.StatusMultipleChoices {
		return fmt.Errorf("a request that the document refuses is answered with %d: %w", code, err)
	}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: code, Header: header, Body: io.NopCloser(bytes.NewReader(answer)),
	})
}

// Ask sends a request to a server, and fails the test where the answer is not as the
// document says.
func (c *Contract) Ask(tb testing.TB, method, url, body string) (status int, answer []byte) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		tb.Fatal(err)
	}
	if err := c.Check(req, body, resp.StatusCode, resp.Header, answer); err != nil {
		tb.Errorf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode, answer
}

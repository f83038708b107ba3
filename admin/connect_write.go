package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

func (a *ConnectAPI) create(r *http.Request) (httpAnswer, error) {
	var body struct {
		Name    string         `json:"name"`
		Config  map[string]any `json:"config"`
		Initial string         `json:"initial_state"`
	}
	if err := readConnectBody(r, &body); err != nil {
		return httpAnswer{}, err
	}
	config, err := connectConfig(body.Config)
	if err != nil {
		return httpAnswer{}, err
	}
	put := ConnectPut{Name: strings.TrimSpace(body.Name), Config: config}
	switch strings.ToUpper(body.Initial) {
	case "", "RUNNING":
	case connectPaused:
		put.State = ha.Paused
	case connectStopped:
		put.State = ha.Stopped
	default:
		return httpAnswer{}, refused(http.StatusBadRequest, "initial_state %q is not one of RUNNING, PAUSED, STOPPED",
			body.Initial)
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.checkName(put.Name, put.Config); err != nil {
		return httpAnswer{}, err
	}
	if _, err := a.find(put.Name); err == nil {
		return httpAnswer{}, refused(http.StatusConflict, "Connector %s already exists", put.Name)
	}
	return a.validAndPut(r, put, http.StatusCreated)
}

func (a *ConnectAPI) putConfig(r *http.Request) (httpAnswer, error) {
	config, _, err := readConnectConfig(r)
	if err != nil {
		return httpAnswer{}, err
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.replace(r, config)
}

// replace stores the configuration of the connector of a request.
func (a *ConnectAPI) replace(r *http.Request, config map[string]string) (httpAnswer, error) {
	put := ConnectPut{Name: r.PathValue("name"), Config: config}
	if err := a.checkName(put.Name, config); err != nil {
		return httpAnswer{}, err
	}
	if _, err := a.find(put.Name); err != nil {
		return a.validAndPut(r, put, http.StatusCreated)
	}
	return a.validAndPut(r, put, http.StatusOK)
}

func (a *ConnectAPI) patchConfig(r *http.Request) (httpAnswer, error) {
	patch, given, err := readConnectConfig(r)
	if err != nil {
		return httpAnswer{}, err
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	config := map[string]string{}
	maps.Copy(config, c.Config)
	for key := range given {
		if value, ok := patch[key]; ok {
			config[key] = value
		} else {
			delete(config, key)
		}
	}
	return a.replace(r, config)
}

// validAndPut stores a configuration that is in order and answers with the connector.
func (a *ConnectAPI) validAndPut(r *http.Request, put ConnectPut, status int) (httpAnswer, error) {
	if err := a.valid(put.Config); err != nil {
		return httpAnswer{}, err
	}
	if err := a.connect.PutConnector(r.Context(), put, actor(r)); err != nil {
		return httpAnswer{}, err
	}
	c, err := a.find(put.Name)
	if err != nil {
		return httpAnswer{}, err
	}
	info := c.info()
	if status != http.StatusCreated {
		return httpAnswer{status: status, body: info}, nil
	}
	info.Tasks = []taskName{} // they are to come, as in Connect
	return httpAnswer{status: status, location: "/connectors/" + url.PathEscape(put.Name), body: info}, nil
}

// checkName puts the name into the configuration, which may have it already.
func (*ConnectAPI) checkName(name string, config map[string]string) error {
	if included, given := config["name"]; given && included != name {
		return refused(http.StatusBadRequest,
			"Connector name configuration (%s) doesn't match connector name in the URL (%s)", included, name)
	}
	config["name"] = name
	return nil
}

// valid refuses a configuration with all that is wrong, in Connect's words.
func (a *ConnectAPI) valid(config map[string]string) error {
	var b strings.Builder
	count := 0
	for _, key := range a.connect.Validate(config, false) {
		for _, e := range key.Errors {
			count++
			fmt.Fprintf(&b, "\n%s: %s", key.Name, e)
		}
	}
	if count == 0 {
		return nil
	}
	return refused(http.StatusBadRequest, "Connector configuration is invalid and contains the following %d error(s):%s\n"+
		"You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`",
		count, b.String())
}

func (a *ConnectAPI) delete(r *http.Request) (httpAnswer, error) {
	a.writing.Lock()
	defer a.writing.Unlock()
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	if err := a.connect.DeleteConnector(r.Context(), c.Name, actor(r)); err != nil {
		return httpAnswer{}, err
	}
	return httpAnswer{status: http.StatusNoContent}, nil
}

func (a *ConnectAPI) setState(want ha.RunState, status int) func(*http.Request) (httpAnswer, error) {
	return func(r *http.Request) (httpAnswer, error) {
		c, err := a.named(r)
		if err != nil {
			return httpAnswer{}, refused(http.StatusNotFound, "Unknown connector %s", r.PathValue("name"))
		}
		// Clients repeat themselves; the audit list need not.
		if c.Wanted.State != want {
			if err := a.control.SetRunState(r.Context(), c.Name, want, actor(r)); err != nil {
				return httpAnswer{}, err
			}
		}
		return httpAnswer{status: status}, nil
	}
}

// restart restarts a connector, which is its task. Without parameters Connect
// restarts the connector alone, which here is the same.
func (a *ConnectAPI) restart(r *http.Request) (httpAnswer, error) {
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, refused(http.StatusNotFound, "Unknown connector: %s", r.PathValue("name"))
	}
	query := r.URL.Query()
	tasks, only := isTrue(query.Get("includeTasks")), isTrue(query.Get("onlyFailed"))
	status := c.status()
	failed := status.Connector.State == connectFailed || len(status.Tasks) > 0 && status.Tasks[0].State == connectFailed
	if !only || failed {
		if err := a.control.Restart(r.Context(), c.Name, actor(r)); err != nil {
			return httpAnswer{}, err
		}
	}
	if !tasks && !only {
		return httpAnswer{status: http.StatusNoContent}, nil
	}
	mark := func(s *connectState) {
		if !only || s.State == connectFailed {
			s.State, s.Trace = connectRestarting, ""
		}
	}
	mark(&status.Connector)
	for i := range status.Tasks {
		if tasks {
			mark(&status.Tasks[i].connectState)
		}
	}
	return httpAnswer{status: http.StatusAccepted, body: status}, nil
}

// isTrue reads a query parameter as Java's Boolean does.
func isTrue(s string) bool { return strings.EqualFold(s, "true") }

func (a *ConnectAPI) restartTask(r *http.Request) (httpAnswer, error) {
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	if _, err := a.task(r); err != nil {
		return httpAnswer{}, refused(http.StatusNotFound, "Unknown task: %s-%s", c.Name, r.PathValue("task"))
	}
	if err := a.control.Restart(r.Context(), c.Name, actor(r)); err != nil {
		return httpAnswer{}, err
	}
	return httpAnswer{status: http.StatusNoContent}, nil
}

func (a *ConnectAPI) resetTopics(r *http.Request) (httpAnswer, error) {
	if c, err := a.named(r); err == nil {
		if err := a.connect.ResetTopics(c.Name); err != nil {
			return httpAnswer{}, err
		}
	}
	return httpAnswer{status: http.StatusAccepted}, nil
}

// readConnectBody decodes a body. Fields that it does not know are refused, as
// Connect does.
func readConnectBody(r *http.Request, into any) error {
	body, err := readAll(r.Body)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	d.DisallowUnknownFields()
	err = d.Decode(into)
	wrong, isWrong := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, io.EOF):
		return refused(http.StatusBadRequest, "the request has no body; send JSON")
	case isWrong:
		return refused(http.StatusBadRequest, "the body has a JSON %s where something else is expected (%s)", wrong.Value,
			cmp.Or(wrong.Field, "at its top"))
	case err != nil:
		return refused(http.StatusBadRequest, "the body is not the JSON that is expected here: %s",
			strings.TrimPrefix(err.Error(), "json: "))
	case d.More():
		return refused(http.StatusBadRequest, "there is more than one JSON value in the body")
	}
	return nil
}

// readConnectConfig decodes a body that is a configuration. given is the same with its
// nulls and with values of their own types.
func readConnectConfig(r *http.Request) (config map[string]string, given map[string]any, err error) {
	if err := readConnectBody(r, &given); err != nil {
		return nil, nil, err
	}
	config, err = connectConfig(given)
	return config, given, err
}

// maxKeys bounds a configuration: each of its keys is compared with all that are known.
const maxKeys = 1000

// connectConfig makes texts of the values, as Connect does with numbers and
// booleans. A null is left out.
func connectConfig(values map[string]any) (map[string]string, error) {
	if len(values) > maxKeys {
		return nil, refused(http.StatusBadRequest, "the configuration has %d keys, and may have %d", len(values), maxKeys)
	}
	out := map[string]string{}
	for key, value := range values {
		switch v := value.(type) {
		case nil:
		case string:
			out[key] = v
		case bool, json.Number:
			out[key] = fmt.Sprint(v)
		default:
			return nil, refused(http.StatusBadRequest, "%q is not a text; in a connector's configuration all values are", key)
		}
	}
	return out, nil
}

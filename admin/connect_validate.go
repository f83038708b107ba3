package admin

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

type pluginInfo struct {
	Class   string `json:"class"`
	Type    string `json:"type"`
	Version string `json:"version"`
}

func (a *ConnectAPI) plugins(r *http.Request) (httpAnswer, error) {
	version := a.connect.Version()
	out := []pluginInfo{}
	for _, class := range connectClasses {
		out = append(out, pluginInfo{class, connectType, version})
	}
	return ok(out)
}

// keyDefinition is a ConfigKeyInfo of Connect.
type keyDefinition struct {
	Name         string   `json:"name"`
	Type         string   `json:"type"`
	Required     bool     `json:"required"`
	DefaultValue *string  `json:"default_value"`
	Importance   string   `json:"importance"`
	Text         string   `json:"documentation"`
	Group        string   `json:"group"`
	Width        string   `json:"width"`
	DisplayName  string   `json:"display_name"`
	Dependents   []string `json:"dependents"`
	Actor        int      `json:"order_in_group"`
}

type keyValue struct {
	Name        string   `json:"name"`
	Value       *string  `json:"value"`
	Recommended []string `json:"recommended_values"`
	Errors      []string `json:"errors"`
	Visible     bool     `json:"visible"`
}

// group is where forms show a key.
func (k *ConnectKey) group() string {
	switch prefix, _, _ := strings.Cut(k.Name, "."); prefix {
	case "transforms":
		return "Transforms"
	case "predicates":
		return "Predicates"
	case "producer":
		return "Producer"
	case "binlog":
		return "binlog-outbox"
	default:
		return "Common"
	}
}

func (k *ConnectKey) definition(order int) keyDefinition {
	d := keyDefinition{
		Name: k.Name, Type: "STRING", Required: k.Required, Importance: "MEDIUM", Text: k.Text, Group: k.group(),
		Width: "MEDIUM", DisplayName: k.Name, Dependents: []string{}, Actor: order,
	}
	if k.Secret {
		d.Type = "PASSWORD"
	}
	if k.Required {
		d.Importance = "HIGH"
	}
	return d
}

func (a *ConnectAPI) pluginKeys(r *http.Request) (httpAnswer, error) {
	name := r.PathValue("class")
	if !isPlugin(name) {
		return httpAnswer{}, refused(http.StatusNotFound, "Unknown plugin %s.", name)
	}
	out := []keyDefinition{}
	for i, k := range a.connect.Keys() {
		out = append(out, k.definition(i+1))
	}
	return ok(out)
}

func (a *ConnectAPI) validate(r *http.Request) (httpAnswer, error) {
	config, _, err := readConnectConfig(r)
	if err != nil {
		return httpAnswer{}, err
	}
	plugin := r.PathValue("class")
	short := func(s string) string { return strings.TrimSuffix(s, "Connector") }
	class, given := config["connector.class"]
	switch {
	case given && !strings.HasSuffix(short(class), short(plugin)):
		return httpAnswer{}, refused(http.StatusBadRequest, "Included connector type %s does not match request type %s",
			class, plugin)
	case !given:
		return httpAnswer{}, refused(http.StatusBadRequest, "Connector config %v contains no connector type", keysOf(config))
	}
	if !isPlugin(class) {
		return httpAnswer{}, refused(http.StatusBadRequest,
			"Failed to find any class that implements Connector and which name matches %s, available connectors are: %s",
			class, strings.Join(connectClasses, ", "))
	}
	return ok(a.validation(class, config))
}

// keysOf are the keys of a configuration: its values may be secrets.
func keysOf(config map[string]string) []string { return slices.Sorted(maps.Keys(config)) }

// validation is a ConfigInfos of Connect.
func (a *ConnectAPI) validation(class string, config map[string]string) any {
	type keyInfo struct {
		Definition keyDefinition `json:"definition"`
		Value      keyValue      `json:"value"`
	}
	out := struct {
		Name    string    `json:"name"`
		Count   int       `json:"error_count"`
		Groups  []string  `json:"groups"`
		Configs []keyInfo `json:"configs"`
	}{Name: class, Groups: []string{}, Configs: []keyInfo{}}
	seen := map[string]bool{}
	for i, k := range a.connect.Validate(config, true) {
		if g := k.group(); !seen[g] {
			seen[g] = true
			out.Groups = append(out.Groups, g)
		}
		v := keyValue{Name: k.Name, Value: k.Value, Recommended: []string{}, Errors: k.Errors, Visible: true}
		if v.Errors == nil {
			v.Errors = []string{}
		}
		// Connect counts the keys that have errors.
		if len(v.Errors) > 0 {
			out.Count++
		}
		out.Configs = append(out.Configs, keyInfo{k.definition(i + 1), v})
	}
	return out
}

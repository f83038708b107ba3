package parity

import (
	"maps"
	"slices"
	"strings"
)

// Cases returns the corpus. IDs are unique.
func Cases() []Case {
	return slices.Concat(routerCases(), placementCases(), timestampCases(), refusalCases(), valueCases(), typeCases(),
		jsonCases(), expansionCases(), converterCases(), charsetCases(), nameCases(), statementCases(), ddlCases(),
		shapeCases(), optionCases(), initialCases(), generatedCases())
}

// outbox is the usual table with a payload of a type.
func outbox(payload string, more ...string) string {
	columns := append([]string{
		"id CHAR(36) NOT NULL", "aggregatetype VARCHAR(255) NOT NULL", "aggregateid VARCHAR(255) NOT NULL",
		"type VARCHAR(255) NOT NULL", "payload " + payload,
	}, more...)
	return "CREATE TABLE outbox (" + strings.Join(columns, ", ") + ", PRIMARY KEY (id))"
}

// insert adds one row to the usual table; the columns after type, and their values,
// are as given.
func insert(id, aggregate, key, kind string, more ...string) string {
	values := append([]string{quote(id), quote(aggregate), quote(key), quote(kind)}, more...)
	return "INSERT INTO outbox VALUES (" + strings.Join(values, ", ") + ")"
}

// quote writes a text as a SQL literal.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(text) + "'"
}

// pairs makes a map of keys and values in turn, with a prefix before each key.
func pairs(prefix string, list ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		m[prefix+list[i]] = list[i+1]
	}
	return m
}

// smt are options of the router.
func smt(list ...string) map[string]string { return pairs(routerAlias, list...) }

// conf are options of the connector.
func conf(list ...string) map[string]string { return pairs("", list...) }

// merge lays maps over each other.
func merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

const (
	stringConverter = "org.apache.kafka.connect.storage.StringConverter"
	jsonConverter   = "org.apache.kafka.connect.json.JsonConverter"
	bytesConverter  = "org.apache.kafka.connect.converters.ByteArrayConverter"
	binaryConverter = "io.debezium.converters.BinaryDataConverter"
)

// form is a set of converters.
type form struct {
	name   string
	config map[string]string
}

func stringForm() form { return form{"string", nil} }

func jsonForm() form {
	return form{"JSON with schemas", conf("key.converter", jsonConverter, "value.converter", jsonConverter)}
}

func plainForm() form {
	return form{"plain JSON", conf("key.converter", jsonConverter, "key.converter.schemas.enable", "false",
		"value.converter", jsonConverter, "value.converter.schemas.enable", "false")}
}

// headerForm is plainForm with headers in JSON too.
func headerForm() form {
	return form{"plain JSON, headers JSON with schemas", merge(plainForm().config,
		conf("header.converter", jsonConverter))}
}

// placing is the option for additional columns.
func placing(text string) map[string]string { return smt("table.fields.additional.placement", text) }

// pause lets what was done before be sent: Debezium loses what it holds in the same
// batch as a row that stops it.
const pause = "DO SLEEP(1.5)"

// slow puts a pause between statements.
func slow(statements ...string) []string {
	var out []string
	for i, s := range statements {
		if i > 0 {
			out = append(out, pause)
		}
		out = append(out, s)
	}
	return out
}

package debezium

import (
	"strings"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

// converterTypes are the converters by their class.
var converterTypes = converter.Classes()

// converterType returns the type of a class or alias.
func converterType(class string) (string, bool) {
	class = strings.TrimSpace(class)
	if t, ok := converterTypes[class]; ok {
		return t, true
	}
	// Aliases of those whose short name is their own.
	for full, t := range converterTypes {
		name := full[strings.LastIndexByte(full, '.')+1:]
		if full != "io.debezium.converters.ByteArrayConverter" && (class == name ||
			class == strings.TrimSuffix(name, "Converter")) {
			return t, true
		}
	}
	return "", false
}

// converters turns key.converter, value.converter and header.converter over. As
// in Connect a converter that the connector does not name is the worker's, with
// the worker's options; one that it names has the connector's options alone.
func (c *connector) converters() {
	for _, part := range []string{"key", "value", "header"} {
		key := part + ".converter"
		get, prefix := c.get, c.withPrefix(key+".")
		class, ok := c.get(key)
		if !ok || class.value == "" {
			for _, k := range prefix {
				l, _ := c.get(k)
				c.harmless(l, key+" is not given here, so Connect takes no options of it either")
			}
			get, prefix = c.worker.get, c.worker.withPrefix(key+".")
			class, ok = c.worker.get(key)
		}
		if ok && class.value != "" {
			c.converter(part, class, get, prefix)
			continue
		}
		if part != "header" && !c.own["format."+part+".type"] {
			c.refuse(c.absent(key), "is not given; it stands in the file of the worker, so give that too with --worker")
		}
	}
}

func (c *connector) converter(part string, class located, get func(string) (located, bool), options []string) {
	path := "format." + part
	if !c.literal(class) {
		return
	}
	t, ok := converterType(class.value)
	if !ok || t == converter.TypeSimple && part != "header" {
		c.refuse(class, strings.TrimSpace(class.value)+" is not possible; StringConverter, JsonConverter, "+
			"ByteArrayConverter, BinaryDataConverter and Connect's converters of numbers and booleans are")
		for _, key := range options {
			l, _ := get(key)
			c.harmless(l, "of that converter")
		}
		return
	}
	c.take(class, path+".type", t, "")
	o := converterOptions{c: c, part: part, get: get}
	if t == converter.TypeJSON {
		o.json(class, path+".", class.key+".")
	}
	if t == converter.TypeBinary {
		o.delegate(class, path)
	}
	for _, key := range options {
		if c.handled[key] && class.file == c.file {
			continue
		}
		l, _ := get(key)
		switch option := strings.TrimPrefix(key, class.key+"."); {
		case o.done[key]:
		case option == "converter.encoding" && strings.EqualFold(strings.ReplaceAll(l.word(), "-", ""), "utf8"):
			c.same(l, "so it is here")
		case option == "converter.encoding":
			c.refuse(l, "texts are UTF-8")
		case option == "converter.type" || option == "schemas.cache.size" || option == "schemas.enable" ||
			strings.HasPrefix(option, "delegate."):
			c.harmless(l, "changes nothing for this converter")
		default:
			c.unknown(l, []string{class.key + ".schemas.enable", class.key + ".decimal.format",
				class.key + ".replace.null.with.default", class.key + ".delegate.converter.type"})
		}
	}
}

// converterOptions reads the options of one converter.
type converterOptions struct {
	c    *connector
	part string
	get  func(string) (located, bool)
	done map[string]bool
}

// json takes JsonConverter's options from keys that begin with prefix. Its
// schemas.enable is true by default, ours is not.
func (o *converterOptions) json(class located, path, prefix string) {
	schemas := true
	for _, option := range []string{"schemas.enable", "decimal.format", "replace.null.with.default"} {
		l, ok := o.option(prefix + option)
		if !ok {
			continue
		}
		o.c.equivalent(l, equivalents()[prefix+option])
		schemas = schemas && (option != "schemas.enable" || l.word() != "false")
	}
	if _, given := o.get(prefix + "schemas.enable"); !given {
		o.c.set(class, path+"schemas", true)
	}
	o.c.schemas = o.c.schemas || schemas && o.part != "header"
}

func (o *converterOptions) option(key string) (located, bool) {
	l, ok := o.get(key)
	if ok {
		if o.done == nil {
			o.done = map[string]bool{}
		}
		o.done[key] = true
	}
	return l, ok
}

// delegate takes what BinaryDataConverter does with everything but bytes.
func (o *converterOptions) delegate(class located, path string) {
	key := class.key + ".delegate.converter.type"
	l, ok := o.option(key)
	if !ok || l.value == "" {
		return
	}
	if o.part == "header" {
		o.c.harmless(l, "Debezium's converter hands nothing on in headers, but refuses what is not bytes")
		for _, k := range o.c.withPrefix(key + ".") {
			o.done[k] = true
			option, _ := o.c.get(k)
			o.c.harmless(option, "of that converter")
		}
		return
	}
	t, ok := converterType(l.value)
	if !ok || t == converter.TypeSimple || t == converter.TypeBinary {
		o.c.refuse(l, l.value+" is not possible; StringConverter, JsonConverter, ByteArrayConverter and Connect's "+
			"converters of numbers and booleans are")
		return
	}
	o.c.take(l, path+".delegate", t, "")
	if t == converter.TypeJSON {
		o.json(l, path+".delegate_", key+".")
	}
}

package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/magiconair/properties"
)

// Mask is what is shown in place of a secret.
const Mask = "***"

// Secret is a text that must not be seen: a password, a token, a private key. In
// every printed form (fmt, JSON, YAML, slog) it is "***", or "" when not set.
//
// What it holds is the text as it was configured, with references such as
// ${file:/run/secrets/db.properties:password} unresolved: Resolve reads them
// anew each time, so that a rotated password is found at the next connect.
type Secret struct {
	text     string
	resolver *Resolver
}

// NewSecret returns a Secret of a text with or without references, which are
// resolved against the process's own environment and files.
func NewSecret(text string) Secret { return Secret{text: text} }

// Resolve returns the secret itself, reading what it refers to. It may do file
// I/O, and is safe for concurrent use. Errors name the reference, never a value.
func (s Secret) Resolve() (string, error) {
	if s.resolver == nil {
		return (&Resolver{}).Resolve(s.text)
	}
	return s.resolver.Resolve(s.text)
}

// IsZero reports whether nothing was configured.
func (s Secret) IsZero() bool { return s.text == "" }

// Reference returns the configured text when it is made of references alone and
// so gives nothing away; otherwise "***", or "" when not set.
func (s Secret) Reference() string {
	if onlyReferences(s.text) {
		return s.text
	}
	return s.String()
}

// String returns "***", or "" when not set.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return Mask
}

// Format implements fmt.Formatter, so that no command prints the fields.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText implements encoding.TextMarshaler, which JSON and YAML use.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Resolver reads what references refer to, as Kafka Connect's FileConfigProvider,
// DirectoryConfigProvider and EnvVarConfigProvider do:
//
//	${file:PATH:KEY}  the value of KEY in a Java properties file
//	${file:PATH}      the whole file, without a newline at its end (not in Connect)
//	${dir:PATH:FILE}  the whole file FILE in the directory PATH, likewise
//	${env:NAME}       an environment variable
//
// ${directory:...} is the same as ${dir:...}. A reference may be a part of a
// text, and what it stands for is not looked at again. The zero value reads the
// process's own files and environment.
type Resolver struct {
	// LookupEnv finds an environment variable; nil is os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// ReadFile reads a file; nil is the function ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Reach bounds what may be referred to; nil is no bound.
	Reach *Reach
}

// Resolve returns text with its references replaced.
func (r *Resolver) Resolve(text string) (string, error) {
	var b strings.Builder
	for {
		ref, start, end := findReference(text)
		if start < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		value, err := r.value(ref)
		if err != nil {
			return "", fmt.Errorf("resolving %s: %w", text[start:end], err)
		}
		b.WriteString(text[:start])
		b.WriteString(value)
		text = text[end:]
	}
}

func (r *Resolver) value(ref reference) (string, error) {
	switch ref.provider {
	case "env":
		return r.env(ref.rest)
	case "file":
		path, key, hasKey := strings.Cut(ref.rest, ":")
		if !hasKey {
			return r.file(path)
		}
		return r.property(path, key)
	case "dir", "directory":
		path, name, ok := strings.Cut(ref.rest, ":")
		if !ok || name == "" || strings.ContainsAny(name, `/\`) {
			return "", errors.New("write it as ${dir:PATH:FILE}")
		}
		return r.file(strings.TrimSuffix(path, "/") + "/" + name)
	default:
		return "", fmt.Errorf("unknown provider %q; use file, dir or env", ref.provider)
	}
}

func (r *Resolver) env(name string) (string, error) {
	if err := r.mayLookUp(name); err != nil {
		return "", err
	}
	lookup := r.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	value, ok := lookup(name)
	if !ok {
		return "", errors.New("the environment variable is not set")
	}
	return value, nil
}

func (r *Resolver) read(path string) ([]byte, error) {
	if err := r.mayRead(path); err != nil {
		return nil, err
	}
	if r.ReadFile != nil {
		return r.ReadFile(path)
	}
	return ReadFile(path)
}

func (r *Resolver) file(path string) (string, error) {
	data, err := r.read(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

func (r *Resolver) property(path, key string) (string, error) {
	data, err := r.read(path)
	if err != nil {
		return "", err
	}
	// Java's rules: ISO-8859-1 with \u escapes, and no expansion of ${...}.
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadBytes(data)
	if err != nil {
		// The library's error may quote the file.
		return "", errors.New("the file is not a Java properties file")
	}
	value, ok := p.Get(key)
	if !ok {
		return "", errors.New("the file has no such key")
	}
	return value, nil
}

// reference is one ${provider:rest}.
type reference struct{ provider, rest string }

// findReference returns the first reference of text and where it stands, or a
// start of -1. ${name} without a colon is no reference: route_topic holds such.
func findReference(text string) (ref reference, start, end int) {
	for at := 0; ; {
		i := strings.Index(text[at:], "${")
		if i < 0 {
			return reference{}, -1, -1
		}
		start = at + i
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			return reference{}, -1, -1
		}
		end = start + length + 1
		provider, rest, ok := strings.Cut(text[start+2:end-1], ":")
		if ok && provider != "" && !strings.ContainsAny(provider, "${ ") {
			return reference{provider, rest}, start, end
		}
		at = start + 2
	}
}

// UnknownProvider returns the provider of the first reference in text that no Resolver
// can read; "" when there is none.
func UnknownProvider(text string) string {
	for {
		ref, start, end := findReference(text)
		if start < 0 {
			return ""
		}
		if !slices.Contains([]string{"env", "file", "dir", "directory"}, ref.provider) {
			return ref.provider
		}
		text = text[end:]
	}
}

// HasReference reports whether text holds a reference.
func HasReference(text string) bool {
	_, start, _ := findReference(text)
	return start >= 0
}

// onlyReferences reports whether text is nothing but references.
func onlyReferences(text string) bool {
	for text != "" {
		_, start, end := findReference(text)
		if start != 0 {
			return false
		}
		text = text[end:]
	}
	return true
}

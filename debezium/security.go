package debezium

import (
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// howToPEM is what to do with a Java key store.
const howToPEM = "a Java key store can't be read here; export it as PEM (keytool -exportcert -rfc, or openssl " +
	"pkcs12) and name the file with "

// sourceTLS turns database.ssl.* over.
func (c *connector) sourceTLS() {
	mode, ok := c.get("database.ssl.mode")
	verifies := false
	switch {
	case !ok && c.mariadb:
		// The MariaDB connector's default differs from the MySQL connector's.
		class, _ := c.get("connector.class")
		c.set(class, "source.tls.mode", string(config.SSLDisabled))
	case ok && c.literal(mode):
		enum := map[string]config.SSLMode{
			"disabled": config.SSLDisabled, "preferred": config.SSLPreferred, "required": config.SSLRequired,
			"verify_ca": config.SSLVerifyCA, "verify_identity": config.SSLVerifyIdentity,
		}
		if c.mariadb {
			enum = map[string]config.SSLMode{
				"disable": config.SSLDisabled, "trust": config.SSLRequired,
				"verify-ca": config.SSLVerifyCA, "verify-full": config.SSLVerifyIdentity,
			}
		}
		value, known := enum[mode.word()]
		if !known {
			c.refuse(mode, fmt.Sprintf("%q is not a mode of this connector", mode.value))
			break
		}
		verifies = value == config.SSLVerifyCA || value == config.SSLVerifyIdentity
		c.take(mode, "source.tls.mode", string(value), "")
	}
	c.store("database.ssl.truststore", "source.tls.ca", verifies)
	c.store("database.ssl.keystore", "source.tls.cert", true)
}

// store refuses a Java key store, unless its PEM twin is given or it has no use.
func (c *connector) store(key, own string, used bool) {
	l, ok := c.get(key)
	password, hasPassword := c.get(key + ".password")
	if hasPassword {
		c.harmless(password, "opens "+key)
	}
	switch {
	case !ok:
	case l.value == "":
		c.same(l, "so it is here")
	case c.own[own]:
		c.harmless(l, ownPrefix+own+" is given")
	case !used:
		c.harmless(l, "the mode does not check the server's certificate")
	default:
		c.refuse(l, howToPEM+ownPrefix+own)
	}
}

// security turns security.protocol, ssl.* and sasl.* over.
func (p *producer) security() {
	protocol, ok := p.settings["security.protocol"]
	tls, sasl := false, false
	if ok {
		if !p.c.literal(protocol) {
			return
		}
		switch strings.ToUpper(protocol.word()) {
		case "PLAINTEXT", "":
		case "SSL":
			tls = true
		case "SASL_PLAINTEXT":
			sasl = true
		case "SASL_SSL":
			tls, sasl = true, true
		default:
			p.c.refuse(protocol, fmt.Sprintf("%q is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", protocol.value))
			return
		}
		p.c.take(protocol, "kafka.tls.enabled", tls, "")
	}
	p.tls(tls)
	p.sasl(sasl)
}

// unused passes over settings of a part of security that the protocol leaves out.
func (p *producer) unused(names ...string) {
	for _, name := range names {
		if l, ok := p.settings[name]; ok {
			p.c.harmless(l, "security.protocol does not ask for it")
		}
	}
}

func (p *producer) tls(on bool) {
	names := []string{
		"ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password", "ssl.truststore.certificates",
		"ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.keystore.certificate.chain",
		"ssl.keystore.key",
		"ssl.key.password", "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class",
	}
	if !on {
		p.unused(names...)
		return
	}
	p.pem("truststore", "kafka.tls.ca", func(l located) {
		p.c.take(l, "kafka.tls.ca", l.value, "")
	})
	p.pem("keystore", "kafka.tls.cert", func(l located) {
		p.c.take(l, "kafka.tls.cert", l.value, "")
		p.c.set(l, "kafka.tls.key", l.value) // one file holds both
	})
	if l, ok := p.settings["ssl.truststore.certificates"]; ok {
		p.c.take(l, "kafka.tls.ca", l.value, "")
	}
	if l, ok := p.settings["ssl.keystore.certificate.chain"]; ok {
		p.c.take(l, "kafka.tls.cert", l.value, "")
	}
	if l, ok := p.settings["ssl.keystore.key"]; ok {
		p.c.take(l, "kafka.tls.key_pem", l.value, "")
	}
	if l, ok := p.settings["ssl.key.password"]; ok {
		if p.c.own["kafka.tls.key"] || p.c.own["kafka.tls.key_pem"] {
			p.c.harmless(l, ownPrefix+"kafka.tls.key is given")
		} else {
			p.c.refuse(l, "an encrypted private key can't be read here; decrypt it (openssl pkey) and protect the file")
		}
	}
	if l, ok := p.settings["ssl.endpoint.identification.algorithm"]; ok {
		switch {
		case l.word() == "https":
			p.c.same(l, "so it is here")
		case p.c.own["kafka.tls.server_name"] || p.c.own["kafka.tls.insecure_skip_verify"]:
			p.c.harmless(l, ownPrefix+"kafka.tls.server_name or insecure_skip_verify is given")
		default:
			p.c.refuse(l,
				"host names in certificates are always checked; give the name they hold with "+ownPrefix+"kafka.tls.server_name, "+
					"or check nothing with "+ownPrefix+"kafka.tls.insecure_skip_verify")
		}
	}
	if l, ok := p.settings["ssl.engine.factory.class"]; ok {
		p.c.refuse(l, "is a Java class; leave it out")
	}
}

// pem takes a store that is a PEM file, and refuses others.
func (p *producer) pem(store, own string, take func(located)) {
	location, ok := p.settings["ssl."+store+".location"]
	kind, hasKind := p.settings["ssl."+store+".type"]
	if password, ok := p.settings["ssl."+store+".password"]; ok {
		p.c.harmless(password, "opens ssl."+store+".location")
	}
	if hasKind {
		p.c.same(kind, "the kind of ssl."+store)
	}
	switch {
	case !ok:
	case p.c.own[own]:
		p.c.harmless(location, ownPrefix+own+" is given")
	case strings.EqualFold(strings.TrimSpace(kind.value), "PEM"):
		take(location)
	default:
		p.c.refuse(location, howToPEM+ownPrefix+own)
	}
}

func (p *producer) sasl(on bool) {
	mechanism, hasMechanism := p.settings["sasl.mechanism"]
	jaas, hasJAAS := p.settings["sasl.jaas.config"]
	names := []string{
		"sasl.mechanism", "sasl.jaas.config", "sasl.client.callback.handler.class", "sasl.login.callback.handler.class",
		"sasl.login.class",
		"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.header.urlencode",
	}
	if !on {
		p.unused(names...)
		return
	}
	c := p.c
	name := strings.ToUpper(strings.TrimSpace(mechanism.value))
	switch name {
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER":
		c.take(mechanism, "kafka.sasl.mechanism", name, "")
	default:
		if !hasMechanism {
			mechanism = c.absent(overridePrefix + "sasl.mechanism")
			name = "GSSAPI"
		}
		c.refuse(mechanism, name+" is not possible; PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER are")
	}
	for _, n := range []string{"sasl.client.callback.handler.class", "sasl.login.callback.handler.class",
		"sasl.login.class"} {
		if l, ok := p.settings[n]; ok {
			p.handler(l)
		}
	}
	if l, ok := p.settings["sasl.oauthbearer.token.endpoint.url"]; ok {
		c.take(l, "kafka.sasl.token_url", strings.TrimSpace(l.value), "")
	}
	if l, ok := p.settings["sasl.oauthbearer.header.urlencode"]; ok {
		c.harmless(l, "client id and secret are sent as the standard has it")
	}
	switch {
	case hasJAAS:
		p.jaas(name, jaas)
	case !c.own["kafka.sasl.user"] && !c.own["kafka.sasl.token"] && !c.own["kafka.sasl.client_id"]:
		c.refuse(c.absent(overridePrefix+"sasl.jaas.config"), "is missing; it holds the user and the password")
	}
}

// handler passes over Kafka's own token fetcher, and refuses others.
func (p *producer) handler(l located) {
	switch {
	case strings.HasSuffix(strings.TrimSpace(l.value), ".OAuthBearerLoginCallbackHandler"):
		p.c.same(l, "tokens are fetched from sasl.oauthbearer.token.endpoint.url")
	case l.value == "":
		p.c.same(l, "so it is here")
	default:
		p.c.refuse(l, "is a Java class; leave it out")
	}
}

// jaas takes the options of a login module. Their values may be references.
func (p *producer) jaas(mechanism string, l located) {
	if strings.HasPrefix(l.value, "${") && strings.HasSuffix(l.value, "}") && strings.Count(l.value, "${") == 1 {
		p.c.refuse(l, "can't be a reference as a whole, since it is taken apart; make the user and the password "+
			"references, or use "+ownPrefix+"kafka.sasl.*")
		return
	}
	options, err := parseJAAS(l.value)
	if err != nil {
		p.c.refuse(l, err.Error())
		return
	}
	paths := map[string]string{"username": "user", "password": "password"}
	if mechanism == "OAUTHBEARER" {
		paths = map[string]string{"clientId": "client_id", "clientSecret": "client_secret", "scope": "scope",
			"oauth.token.endpoint.uri": "token_url"}
	}
	extensions := map[string]string{}
	for _, o := range options {
		path, known := paths[o.key]
		extension, isExtension := strings.CutPrefix(o.key, "extension_")
		switch {
		case known:
			p.c.set(l, "kafka.sasl."+path, o.value)
		case isExtension && mechanism == "OAUTHBEARER":
			extensions[extension] = o.value
		case strings.HasPrefix(o.key, "unsecuredLoginStringClaim"):
			p.c.refuse(l, "unsecured tokens are not possible; use "+ownPrefix+"kafka.sasl.token or token_url")
			return
		default:
			// Its name is not told: it may be a piece of a password that was not put in quotes.
			p.c.refuse(l, "an option of the login module is not understood; is a quotation mark missing?")
			return
		}
	}
	if len(extensions) > 0 {
		p.c.set(l, "kafka.sasl.extensions", extensions)
	}
	p.c.line(l, Taken, "kafka.sasl", "")
}

// jaasOption is one option of a login module.
type jaasOption struct{ key, value string }

// parseJAAS reads "some.LoginModule required key="value" ... ;". Its errors never
// quote the text, which holds the password.
func parseJAAS(text string) ([]jaasOption, error) {
	tokens, err := jaasTokens(text)
	if err != nil {
		return nil, err
	}
	if len(tokens) < 3 || tokens[len(tokens)-1] != ";" {
		return nil, fmt.Errorf("is not \"LoginModule required key=\\\"value\\\" ...;\"; is the semicolon at the end missing?")
	}
	tokens = tokens[2 : len(tokens)-1]
	var out []jaasOption
	for i := 0; i < len(tokens); i += 3 {
		if i+2 >= len(tokens) || tokens[i+1] != "=" {
			return nil, fmt.Errorf("is not \"LoginModule required key=\\\"value\\\" ...;\"")
		}
		out = append(out, jaasOption{tokens[i], tokens[i+2]})
	}
	return out, nil
}

// jaasTokens splits like Java's StreamTokenizer: words, quoted texts, "=" and ";".
func jaasTokens(text string) ([]string, error) {
	var out []string
	for i := 0; i < len(text); {
		switch ch := text[i]; {
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			i++
		case ch == '=' || ch == ';':
			out = append(out, string(ch))
			i++
		case ch == '"' || ch == '\'':
			var b strings.Builder
			for i++; i < len(text) && text[i] != ch; i++ {
				if text[i] == '\\' && i+1 < len(text) {
					i++
				}
				b.WriteByte(text[i])
			}
			if i >= len(text) {
				return nil, fmt.Errorf("a quotation mark is not closed")
			}
			out = append(out, b.String())
			i++
		default:
			start := i
			for i < len(text) && !strings.ContainsRune(" \t\r\n=;\"'", rune(text[i])) {
				i++
			}
			out = append(out, text[start:i])
		}
	}
	return out, nil
}

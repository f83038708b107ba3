// Package docs holds those documents that a node shows to its operators.
package docs

import "embed"

// Runbooks has runbooks/NAME.md, one for each alert.
//
//go:embed runbooks/*.md
var Runbooks embed.FS

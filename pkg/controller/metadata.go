package controller

import (
	"fmt"

	"k8s.io/client-go/metadata"
)

// Metadata returns a client with c's identity that sees only the metadata of objects, of any kind the server has.
func Metadata(c *Client) (metadata.Interface, error) {
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return nil, fmt.Errorf("building the metadata client: %w", err)
	}
	return m, nil
}

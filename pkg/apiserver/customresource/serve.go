package customresource

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"bonsai/pkg/apiserver/catalog"
)

// serve has the catalog serve the named definitions as view has them, and no longer those that it has not.
func (c *Controller) serve(names map[string]bool, view map[string]*definition) {
	var add []*running
	for _, name := range inOrder(names, view) {
		d := view[name]
		was := c.served[d.resource()]
		switch {
		case !servable(d.crd):
			c.stop(d.resource())
		case was == nil:
			if r := c.start(d); r != nil {
				add = append(add, r)
			}
		case was.of.mark != d.mark:
			c.replace(was, d)
		case was.of.terminating() != d.terminating():
			c.rename(was, d)
		}
	}
	c.add(add)
	for name := range names {
		if view[name] == nil {
			delete(c.idle, name)
			c.stop(schema.ParseGroupResource(name))
		}
	}
}

// start makes what serves a definition; nil if it cannot be served, or has nothing to serve: no version, or none that
// others do not serve.
func (c *Controller) start(d *definition) *running {
	conv, err := c.converter(d.crd)
	if err != nil {
		c.Log.Error("a definition's conversion is not possible", "name", d.crd.Name, "err", err)
		return nil
	}
	s := newServed(d, conv, func(v *v1.CustomResourceDefinitionVersion) bool {
		return v.Served && !c.static[schema.GroupVersion{Group: d.group(), Version: v.Name}]
	})
	if s == nil {
		c.idle[d.crd.Name] = d.mark
		return nil
	}
	delete(c.idle, d.crd.Name)
	e, err := c.Entry(s.row, scaleOf(d.crd))
	if err != nil {
		c.Log.Error("a definition cannot be served", "name", d.crd.Name, "err", err)
		return nil
	}
	return &running{s, e}
}

func (c *Controller) converter(crd *v1.CustomResourceDefinition) (converter, error) {
	conv := converter{ctx: c.Catalog.Context(), crd: crd, uid: c.UID, observe: c.Observe, now: c.Now}
	how := crd.Spec.Conversion
	if how == nil || how.Strategy != v1.WebhookConverter {
		return conv, nil
	}
	if how.Webhook == nil || how.Webhook.ClientConfig == nil {
		return conv, errNoHook
	}
	var err error
	conv.hook, err = c.Hook(how.Webhook.ClientConfig)
	return conv, err
}

// add has all of them served at once, or, if one of them cannot be, each that can.
func (c *Controller) add(all []*running) {
	if len(all) == 0 {
		return
	}
	entries := make([]catalog.Entry, len(all))
	for i, r := range all {
		entries[i] = r.entry
	}
	err := c.Catalog.Add(entries...)
	if err != nil && len(all) > 1 {
		for _, r := range all {
			c.add([]*running{r})
		}
		return
	}
	if err != nil {
		c.Log.Error("a definition cannot be served", "name", all[0].of.crd.Name, "err", err)
		return
	}
	for _, r := range all {
		c.served[r.of.resource()] = r
	}
}

// replace serves a definition that has changed.
func (c *Controller) replace(was *running, d *definition) {
	r := c.start(d)
	if r == nil {
		c.stop(d.resource())
		return
	}
	if err := c.Catalog.Replace(r.entry); err != nil {
		c.Log.Error("a changed definition cannot be served", "name", d.crd.Name, "err", err)
		return
	}
	c.served[d.resource()] = r
}

// rename changes only what is said of a resource: its store, its watches and its schemas stay.
func (c *Controller) rename(was *running, d *definition) {
	row := *was.row
	row.Ending = ""
	if d.terminating() {
		row.Ending = ending
	}
	e := was.entry
	e.Row = &row
	if err := c.Catalog.Replace(e); err != nil {
		c.Log.Error("a changed definition cannot be served", "name", d.crd.Name, "err", err)
		return
	}
	c.served[d.resource()] = &running{&served{of: d, row: &row, lazy: was.lazy}, e}
}

// stop serves a definition's objects no longer.
func (c *Controller) stop(gr schema.GroupResource) {
	if c.served[gr] == nil {
		return
	}
	if err := c.Catalog.Remove(gr); err != nil {
		c.Log.Error("a definition cannot be left out", "resource", gr, "err", err)
		return
	}
	delete(c.served, gr)
}

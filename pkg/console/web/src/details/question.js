// question names an object for kubectl why and kubectl trace.
export const question = (o, where) =>
  new URLSearchParams({
    kind: where.group ? `${where.resource}.${where.group}` : where.resource,
    name: o.metadata.name,
    ...(o.metadata.namespace && { namespace: o.metadata.namespace }),
  })

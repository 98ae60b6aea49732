# Prints the public names of a crate from the JSON that rustdoc writes, one `module.Name` per line, and the methods, variants
# and fields of types as `module.Type.Name`. An item that can be reached through several modules has the shortest path.
.index as $index
| .index[.root | tostring] as $root
| def item: $index[tostring];
  def kind: .inner | keys[0];
  def named: select(. != null and .name != null);
  def inherent:
    [.inner[].impls?[]? | item | select(. != null) | .inner.impl | select(.trait == null) | .items[] | item | named];
  def members:
    (inherent[]),
    (if kind == "struct" then (.inner.struct.kind.plain?.fields // [])[] | item | named
     elif kind == "enum" then .inner.enum.variants[] | item | named
     elif kind == "trait" then .inner.trait.items[] | item | named
     else empty end)
    | select(.visibility == "public" or .visibility == "default") | .name;
  def types: kind | IN("struct", "enum", "union", "trait", "function", "type_alias", "constant", "static", "macro", "proc_macro");
  def walk($path):
    .inner.module.items[] | item | select(. != null)
    | if kind == "module" then .name as $name | walk($path + [$name])
      elif kind == "use" then
        .inner.use as $use
        | ($use.id | if . == null then null else item end) as $target
        | if $target == null then (if $use.is_glob then empty else {id: $use.source, path: ($path + [$use.name]), members: []} end)
          elif ($target | kind) == "module" then $target | walk(if $use.is_glob then $path else $path + [$use.name] end)
          elif $target | types then $target | {id, path: ($path + [$use.name]), members: [members]}
          else empty end
      elif types then {id, path: ($path + [.name]), members: [members]}
      else empty end;
  [$root | walk([$root.name])]
| group_by(.id)
| map(min_by(.path | length))
| .[]
| ((.path[:-1] | join("::")) + "." + .path[-1]) as $name
| $name, (.members | unique | .[] | $name + "." + .)

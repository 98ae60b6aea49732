//! Environments of expressions that are not rules of a schema: admission policies, match conditions, device selectors.
//!
//! An [`Environment`] declares the variables of an expression. Expressions are compiled and type-checked; nothing here
//! evaluates them.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{
    compile::Compiled,
    decl::{Decl, DeclType},
    types::CelType,
};

/// The variables that an expression can use.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    variables: Vec<(Arc<str>, CelType)>,
}

/// The type that the value of an expression must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredType {
    /// The value is a bool.
    Bool,
    /// The value is a string.
    String,
    /// The value is a string or null.
    StringOrNull,
    /// The value can have any type.
    Any,
}

impl RequiredType {
    fn accepts(self, ty: &CelType) -> bool {
        match self {
            Self::Bool => matches!(ty, CelType::Bool),
            Self::String => matches!(ty, CelType::String),
            Self::StringOrNull => matches!(ty, CelType::String | CelType::Null),
            Self::Any => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::String => "string",
            Self::StringOrNull => "one of [string null_type]",
            Self::Any => "any",
        }
    }
}

/// The result type of an expression, to declare a variable with.
#[derive(Debug, Clone)]
pub(crate) struct OutputType(CelType);

static REQUEST: LazyLock<CelType> = LazyLock::new(|| declared(&request()));
static NAMESPACE: LazyLock<CelType> = LazyLock::new(|| declared(&namespace()));

fn declared(schema: &Value) -> CelType {
    Decl::of(schema, false).map_or(CelType::Dyn, |decl| decl.cel_type())
}

impl Environment {
    /// Returns the environment of admission: the objects, the request, and where they exist parameters and the authorizer.
    pub(crate) fn admission(has_params: bool, has_authorizer: bool) -> Self {
        let mut variables: Vec<(Arc<str>, CelType)> = vec![
            ("object".into(), CelType::Dyn),
            ("oldObject".into(), CelType::Dyn),
            ("namespaceObject".into(), NAMESPACE.clone()),
            ("request".into(), REQUEST.clone()),
        ];
        if has_params {
            variables.push(("params".into(), CelType::Dyn));
        }
        if has_authorizer {
            variables.push(("authorizer".into(), CelType::Named("kubernetes.authorization.Authorizer")));
            variables.push((
                "authorizer.requestResource".into(),
                CelType::Named("kubernetes.authorization.ResourceCheck"),
            ));
        }
        Self { variables }
    }

    /// Returns the environment of selectors of devices: the device.
    pub(crate) fn device() -> Self {
        static DEVICE: LazyLock<CelType> = LazyLock::new(|| Decl::device().cel_type());
        Self { variables: vec![("device".into(), DEVICE.clone())] }
    }

    /// Removes the authorizer.
    pub(crate) fn without_authorizer(mut self) -> Self {
        self.variables.retain(|(name, _)| !name.starts_with("authorizer"));
        self
    }

    /// Adds the object `variables` with a field for each variable of a policy.
    pub(crate) fn with_variables(mut self, fields: &[(String, OutputType)]) -> Self {
        let fields = fields.iter().map(|(name, OutputType(ty))| (name.clone(), Decl::of_type(ty)));
        self.variables.push(("variables".into(), Decl::object_of(fields.collect()).cel_type()));
        self
    }

    /// Compiles an expression and returns its type.
    ///
    /// # Errors
    /// Returns a message that shows each mistake, or that the result has the wrong type.
    pub(crate) fn compile(&self, source: &str, output: RequiredType) -> Result<OutputType, String> {
        let compiled = Compiled::new(source).map_err(|error| format!("compilation failed: {error}"))?;
        let ty = compiled.type_in(&self.variables)?;
        if output.accepts(&ty) {
            Ok(OutputType(ty))
        } else {
            Err(format!("must evaluate to {} but got {ty}", output.name()))
        }
    }
}

impl OutputType {
    /// The type of an expression that does not compile.
    pub(crate) fn unknown() -> Self {
        Self(CelType::Dyn)
    }
}

/// A schema of an object with these properties.
fn object(properties: &[(&str, Value)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties})
}

fn strings(names: &[&str]) -> Vec<(String, Value)> {
    names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect()
}

fn with_strings(names: &[&str], mut schema: Value) -> Value {
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.extend(strings(names));
    }
    schema
}

/// The `AdmissionRequest` of an expression.
fn request() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let kind = with_strings(&["group", "version", "kind"], object(&[]));
    let resource = with_strings(&["group", "version", "resource"], object(&[]));
    let user = with_strings(
        &["username", "uid"],
        object(&[
            ("groups", texts.clone()),
            ("extra", json!({"type": "object", "additionalProperties": texts})),
        ]),
    );
    with_strings(
        &["subResource", "requestSubResource", "name", "namespace", "operation"],
        object(&[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("userInfo", user),
            ("dryRun", json!({"type": "boolean"})),
            ("options", json!({"x-kubernetes-int-or-string": true})),
        ]),
    )
}

/// The `Namespace` of an expression.
fn namespace() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer"});
    let metadata = with_strings(
        &["name", "generateName", "namespace", "UID", "resourceVersion"],
        object(&[
            ("labels", map.clone()),
            ("annotations", map),
            ("creationTimestamp", time.clone()),
            ("deletionGracePeriodSeconds", number.clone()),
            ("deletionTimestamp", time.clone()),
            ("generation", number),
            ("finalizers", texts.clone()),
        ]),
    );
    let condition =
        with_strings(&["status", "type", "message", "reason"], object(&[("lastTransitionTime", time)]));
    let status =
        with_strings(&["phase"], object(&[("conditions", json!({"type": "array", "items": condition}))]));
    object(&[("metadata", metadata), ("spec", object(&[("finalizers", texts)])), ("status", status)])
}

impl Decl {
    fn plain(ty: DeclType) -> Arc<Self> {
        Arc::new(Self { ty, max_elements: 0, min_bytes: 0 })
    }

    /// Returns the declaration of an object with these fields.
    fn object_of(fields: std::collections::BTreeMap<String, Arc<Self>>) -> Arc<Self> {
        Self::plain(DeclType::Object(fields))
    }

    /// Returns the declaration of a field with the type of an expression. Types that a field cannot have become dyn.
    fn of_type(ty: &CelType) -> Arc<Self> {
        Self::plain(match ty {
            CelType::Bool => DeclType::Bool,
            CelType::Int => DeclType::Int,
            CelType::Double => DeclType::Double,
            CelType::String => DeclType::String,
            CelType::Bytes => DeclType::Bytes,
            CelType::Duration => DeclType::Duration,
            CelType::Timestamp => DeclType::Timestamp,
            CelType::List(of) => DeclType::List(Self::of_type(of)),
            CelType::Map(key, value) if matches!(**key, CelType::String) => {
                DeclType::Map(Self::of_type(value))
            }
            _ => DeclType::Dyn,
        })
    }

    /// Returns the declaration of a device with its attributes and capacities by domain and name.
    fn device() -> Arc<Self> {
        let by_name = |of: DeclType| {
            let inner = Self::plain(DeclType::Map(Self::plain(of)));
            Self::plain(DeclType::Map(inner))
        };
        let fields = [
            ("driver", Self::plain(DeclType::String)),
            ("allowMultipleAllocations", Self::plain(DeclType::Bool)),
            ("attributes", by_name(DeclType::Dyn)),
            ("capacity", by_name(DeclType::Named("kubernetes.Quantity"))),
        ];
        Self::object_of(fields.map(|(name, field)| (name.to_owned(), field)).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Environment, RequiredType};

    fn verdicts(environment: &Environment, output: RequiredType, cases: &[(&str, bool)]) {
        for (source, is_accepted) in cases {
            let result = environment.compile(source, output);
            assert_eq!(result.is_ok(), *is_accepted, "{source}: {result:?}");
        }
    }

    #[test]
    fn admission_expressions_have_object_request_and_authorizer_variables() {
        let cases = [
            ("true", true),
            ("object.x == 1", true),
            ("object.x", false),
            ("1", false),
            ("self.x == 1", false),
            ("params.x == 1", false),
            ("has(object.metadata.labels) && oldObject == null", true),
            ("request.operation == 'CREATE'", true),
            ("request.nope == 'x'", false),
            ("request.userInfo.groups.exists(g, g == 'a')", true),
            ("request.options.dryRun == true", true),
            ("namespaceObject.metadata.name == 'x'", true),
            ("namespaceObject.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')", true),
            ("authorizer.group('').resource('pods').namespace('x').check('get').allowed()", true),
            ("authorizer.path('/healthz').check('get').reason() == ''", true),
            ("authorizer.requestResource.check('get').allowed()", true),
            ("authorizer.requestResource.nope('get')", false),
            ("variables.x == 1", false),
            ("a b", false),
        ];
        verdicts(&Environment::admission(false, true), RequiredType::Bool, &cases);
        verdicts(
            &Environment::admission(true, false),
            RequiredType::Bool,
            &[("params.x == 1", true), ("authorizer.path('/x').check('get').allowed()", false)],
        );
        verdicts(
            &Environment::admission(false, true),
            RequiredType::StringOrNull,
            &[("'x'", true), ("null", true), ("1", false)],
        );
    }

    #[test]
    fn variables_of_a_policy_have_the_types_of_their_expressions() {
        let environment = Environment::admission(false, true);
        let number = environment.compile("1", RequiredType::Any).expect("a number");
        let names = environment.compile("['a']", RequiredType::Any).expect("a list");
        let environment =
            environment.with_variables(&[("n".to_owned(), number), ("names".to_owned(), names)]);
        verdicts(
            &environment,
            RequiredType::Bool,
            &[
                ("variables.n > 0", true),
                ("variables.n == 'a'", false),
                ("variables.names.all(name, name.startsWith('a'))", true),
                ("variables.other == 1", false),
            ],
        );
    }

    #[test]
    fn device_selectors_have_the_variable_device() {
        verdicts(
            &Environment::device(),
            RequiredType::Bool,
            &[
                (r#"device.driver == "a""#, true),
                (r#"device.attributes["a.example.com"].size > 3"#, true),
                (r#"device.capacity["a.example.com"].memory.isGreaterThan(quantity("1Gi"))"#, true),
                (r#"device.capacity["a.example.com"].memory == 1"#, false),
                ("device.allowMultipleAllocations", true),
                ("device.nope", false),
                ("abc", false),
            ],
        );
    }
}

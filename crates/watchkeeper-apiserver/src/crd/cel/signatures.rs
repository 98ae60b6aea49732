//! The functions of the Kubernetes CEL environment: overloads, parameter types, result types.
//!
//! The list is that of the environment of Kubernetes 1.37 for new expressions. Functions of other CEL environments, such as
//! `math.greatest`, are not included.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    ast::op,
    types::{Bindings, CelType},
};

/// An overload of a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) id: String,
    pub(super) is_member: bool,
    /// The parameter types, starting with the receiver of a member. Type variables are numbered from zero within the
    /// overload.
    pub(super) params: Vec<CelType>,
    pub(super) result: CelType,
}

/// The overloads, one per line: function, overload, `m` for a member or `g`, parameters, result.
const TABLE: &str = "
_?_:_ conditional g bool;A;A A
_&&_ logical_and g bool;bool bool
_||_ logical_or g bool;bool bool
!_ logical_not g bool bool
@not_strictly_false not_strictly_false g bool bool
_==_ equals g A;A bool
_!=_ not_equals g A;A bool
_+_ add_bytes g bytes;bytes bytes
_+_ add_double g double;double double
_+_ add_duration_duration g duration;duration duration
_+_ add_duration_timestamp g duration;timestamp timestamp
_+_ add_timestamp_duration g timestamp;duration timestamp
_+_ add_int64 g int;int int
_+_ add_list g list(A);list(A) list(A)
_+_ add_string g string;string string
_+_ add_uint64 g uint;uint uint
_/_ divide_double g double;double double
_/_ divide_int64 g int;int int
_/_ divide_uint64 g uint;uint uint
_%_ modulo_int64 g int;int int
_%_ modulo_uint64 g uint;uint uint
_*_ multiply_double g double;double double
_*_ multiply_int64 g int;int int
_*_ multiply_uint64 g uint;uint uint
-_ negate_double g double double
-_ negate_int64 g int int
_-_ subtract_double g double;double double
_-_ subtract_duration_duration g duration;duration duration
_-_ subtract_int64 g int;int int
_-_ subtract_timestamp_duration g timestamp;duration timestamp
_-_ subtract_timestamp_timestamp g timestamp;timestamp duration
_-_ subtract_uint64 g uint;uint uint
_[_] index_list g list(A);int A
_[_] index_map g map(A,B);A B
_[_] optional_list_index_int g opt(list(A));int opt(A)
_[_] optional_map_index_value g opt(map(A,B));A opt(B)
_[?_] list_optindex_optional_int g list(A);int opt(A)
_[?_] optional_list_optindex_optional_int g opt(list(A));int opt(A)
_[?_] map_optindex_optional_value g map(A,B);A opt(B)
_[?_] optional_map_optindex_optional_value g opt(map(A,B));A opt(B)
@in in_list g A;list(A) bool
@in in_map g A;map(A,B) bool
size size_bytes g bytes int
size bytes_size m bytes int
size size_list g list(A) int
size list_size m list(A) int
size size_map g map(A,B) int
size map_size m map(A,B) int
size size_string g string int
size string_size m string int
type type g A type(A)
bool bool_to_bool g bool bool
bool string_to_bool g string bool
bytes bytes_to_bytes g bytes bytes
bytes string_to_bytes g string bytes
double double_to_double g double double
double int64_to_double g int double
double string_to_double g string double
double uint64_to_double g uint double
duration duration_to_duration g duration duration
duration string_to_duration g string duration
dyn to_dyn g A dyn
int int64_to_int64 g int int
int double_to_int64 g double int
int duration_to_int64 g duration int
int string_to_int64 g string int
int timestamp_to_int64 g timestamp int
int uint64_to_int64 g uint int
string string_to_string g string string
string bool_to_string g bool string
string bytes_to_string g bytes string
string double_to_string g double string
string duration_to_string g duration string
string int64_to_string g int string
string timestamp_to_string g timestamp string
string uint64_to_string g uint string
string ip_to_string g net.IP string
string cidr_to_string g net.CIDR string
timestamp timestamp_to_timestamp g timestamp timestamp
timestamp int64_to_timestamp g int timestamp
timestamp string_to_timestamp g string timestamp
uint uint64_to_uint64 g uint uint
uint double_to_uint64 g double uint
uint int64_to_uint64 g int uint
uint string_to_uint64 g string uint
contains contains_string m string;string bool
endsWith ends_with_string m string;string bool
startsWith starts_with_string m string;string bool
matches matches g string;string bool
matches matches_string m string;string bool
getHours duration_to_hours m duration int
getMinutes duration_to_minutes m duration int
getSeconds duration_to_seconds m duration int
getMilliseconds duration_to_milliseconds m duration int
optional.of optional_of g A opt(A)
optional.ofNonZeroValue optional_ofNonZeroValue g A opt(A)
optional.none optional_none g - opt(A)
optional.unwrap optional_unwrap g list(opt(A)) list(A)
unwrapOpt optional_unwrapOpt m list(opt(A)) list(A)
value optional_value m opt(A) A
hasValue optional_hasValue m opt(A) bool
or optional_or_optional m opt(A);opt(A) opt(A)
orValue optional_orValue_value m opt(A);A A
first list_first m list(A) opt(A)
last list_last m list(A) opt(A)
charAt string_char_at_int m string;int string
indexOf string_index_of_string m string;string int
indexOf string_index_of_string_int m string;string;int int
indexOf list_a_index_of_int m list(A);A int
lastIndexOf string_last_index_of_string m string;string int
lastIndexOf string_last_index_of_string_int m string;string;int int
lastIndexOf list_a_last_index_of_int m list(A);A int
lowerAscii string_lower_ascii m string string
upperAscii string_upper_ascii m string string
trim string_trim m string string
replace string_replace_string_string m string;string;string string
replace string_replace_string_string_int m string;string;string;int string
split string_split_string m string;string list(string)
split string_split_string_int m string;string;int list(string)
substring string_substring_int m string;int string
substring string_substring_int_int m string;int;int string
join list_join m list(string) string
join list_join_string m list(string);string string
format string_format m string;list(dyn) string
strings.quote strings_quote g string string
find string_find_string m string;string string
findAll string_find_all_string m string;string list(string)
findAll string_find_all_string_int m string;string;int list(string)
slice list_slice m list(A);int;int list(A)
flatten list_flatten m list(list(A)) list(A)
flatten list_flatten_int m list(dyn);int list(dyn)
lists.range lists_range g int list(int)
reverse list_reverse m list(A) list(A)
distinct list_distinct m list(A) list(A)
cel.@mapInsert @mapInsert_map_key_value g map(A,B);A;B map(A,B)
cel.@mapInsert @mapInsert_map_map g map(A,B);map(A,B) map(A,B)
sets.contains list_sets_contains_list g list(A);list(A) bool
sets.equivalent list_sets_equivalent_list g list(A);list(A) bool
sets.intersects list_sets_intersects_list g list(A);list(A) bool
url string_to_url g string kubernetes.URL
isURL is_url_string g string bool
getScheme url_get_scheme m kubernetes.URL string
getHost url_get_host m kubernetes.URL string
getHostname url_get_hostname m kubernetes.URL string
getPort url_get_port m kubernetes.URL string
getEscapedPath url_get_escaped_path m kubernetes.URL string
getQuery url_get_query m kubernetes.URL map(string,list(string))
quantity string_to_quantity g string kubernetes.Quantity
isQuantity is_quantity_string g string bool
sign quantity_sign g kubernetes.Quantity int
isGreaterThan quantity_is_greater_than m kubernetes.Quantity;kubernetes.Quantity bool
isGreaterThan semver_is_greater_than m kubernetes.Semver;kubernetes.Semver bool
isLessThan quantity_is_less_than m kubernetes.Quantity;kubernetes.Quantity bool
isLessThan semver_is_less_than m kubernetes.Semver;kubernetes.Semver bool
compareTo quantity_compare_to m kubernetes.Quantity;kubernetes.Quantity int
compareTo semver_compare_to m kubernetes.Semver;kubernetes.Semver int
asApproximateFloat quantity_get_float m kubernetes.Quantity double
asInteger quantity_get_int m kubernetes.Quantity int
isInteger quantity_is_integer m kubernetes.Quantity bool
add quantity_add m kubernetes.Quantity;kubernetes.Quantity kubernetes.Quantity
add quantity_add_int m kubernetes.Quantity;int kubernetes.Quantity
sub quantity_sub m kubernetes.Quantity;kubernetes.Quantity kubernetes.Quantity
sub quantity_sub_int m kubernetes.Quantity;int kubernetes.Quantity
semver string_to_semver g string kubernetes.Semver
semver string_bool_to_semver g string;bool kubernetes.Semver
isSemver is_semver_string g string bool
isSemver is_semver_string_bool g string;bool bool
major semver_major m kubernetes.Semver int
minor semver_minor m kubernetes.Semver int
patch semver_patch m kubernetes.Semver int
ip string_to_ip g string net.IP
ip cidr_ip m net.CIDR net.IP
ip.isCanonical ip_is_canonical g string bool
isIP is_ip g string bool
family ip_family m net.IP int
isUnspecified ip_is_unspecified m net.IP bool
isLoopback ip_is_loopback m net.IP bool
isLinkLocalMulticast ip_is_link_local_multicast m net.IP bool
isLinkLocalUnicast ip_is_link_local_unicast m net.IP bool
isGlobalUnicast ip_is_global_unicast m net.IP bool
cidr string_to_cidr g string net.CIDR
isCIDR is_cidr g string bool
containsIP cidr_contains_ip_string m net.CIDR;string bool
containsIP cidr_contains_ip_ip m net.CIDR;net.IP bool
containsCIDR cidr_contains_cidr_string m net.CIDR;string bool
containsCIDR cidr_contains_cidr m net.CIDR;net.CIDR bool
prefixLength cidr_prefix_length m net.CIDR int
masked cidr_masked m net.CIDR net.CIDR
validate format-validate m kubernetes.NamedFormat;string opt(list(string))
format.named format-named g string opt(kubernetes.NamedFormat)
path authorizer_path m Authorizer;string PathCheck
group authorizer_group m Authorizer;string GroupCheck
serviceAccount authorizer_serviceaccount m Authorizer;string;string Authorizer
resource groupcheck_resource m GroupCheck;string ResourceCheck
subresource resourcecheck_subresource m ResourceCheck;string ResourceCheck
namespace resourcecheck_namespace m ResourceCheck;string ResourceCheck
name resourcecheck_name m ResourceCheck;string ResourceCheck
fieldSelector authorizer_fieldselector m ResourceCheck;string ResourceCheck
labelSelector authorizer_labelselector m ResourceCheck;string ResourceCheck
check pathcheck_check m PathCheck;string Decision
check resourcecheck_check m ResourceCheck;string Decision
errored decision_errored m Decision bool
error decision_error m Decision string
allowed decision_allowed m Decision bool
reason decision_reason m Decision string
";

/// The names of the formats that `format.…()` returns.
const FORMATS: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

const COMPARABLE: [(&str, &str); 8] = [
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("bool", "bool"),
    ("duration", "duration"),
    ("timestamp", "timestamp"),
    ("string", "string"),
    ("bytes", "bytes"),
];

type Functions = HashMap<String, Vec<Overload>>;

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(functions);

/// Returns the overloads of a function.
pub(super) fn overloads(function: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(function).map(Vec::as_slice)
}

/// Returns whether a function exists.
pub(super) fn exists(function: &str) -> bool {
    FUNCTIONS.contains_key(function)
}

fn functions() -> Functions {
    let mut all = Functions::new();
    let mut add = |name: &str, id: String, is_member: bool, params: &str, result: &str| {
        let params = params.split(';').filter(|param| *param != "-").map(type_named).collect();
        let overload = Overload { id, is_member, params, result: type_named(result) };
        all.entry(name.to_owned()).or_default().push(overload);
    };
    for line in TABLE.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(id), Some(style), Some(params), Some(result)) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        {
            add(name, id.to_owned(), style == "m", params, result);
        }
    }
    let ordered = [
        (op::LESS, "less"),
        (op::LESS_EQUALS, "less_equals"),
        (op::GREATER, "greater"),
        (op::GREATER_EQUALS, "greater_equals"),
    ];
    for (operator, id) in ordered {
        for (_, ty) in COMPARABLE {
            add(operator, format!("{id}_{ty}"), false, &format!("{ty};{ty}"), "bool");
        }
        for (left, right) in [
            ("int", "double"),
            ("int", "uint"),
            ("uint", "double"),
            ("uint", "int"),
            ("double", "int"),
            ("double", "uint"),
        ] {
            add(operator, format!("{id}_{left}_{right}"), false, &format!("{left};{right}"), "bool");
        }
    }
    for (name, ty) in COMPARABLE {
        let list = format!("list({ty})");
        add("isSorted", format!("list_{name}_is_sorted_bool"), true, &list, "bool");
        add("max", format!("list_{name}_max_{name}"), true, &list, ty);
        add("min", format!("list_{name}_min_{name}"), true, &list, ty);
        add("sort", format!("list_{name}_sort"), true, &list, &list);
        let keyed = format!("list(A);{list}");
        add(op::SORT_BY_KEYS, format!("list_{name}_sortByAssociatedKeys"), true, &keyed, "list(A)");
        if matches!(name, "int" | "uint" | "double" | "duration") {
            add("sum", format!("list_{name}_sum_{name}"), true, &list, ty);
        }
    }
    let fields = [
        "FullYear",
        "Month",
        "DayOfYear",
        "DayOfMonth",
        "Date",
        "DayOfWeek",
        "Hours",
        "Minutes",
        "Seconds",
        "Milliseconds",
    ];
    for field in fields {
        let name = format!("get{field}");
        add(&name, format!("timestamp_to_{field}"), true, "timestamp", "int");
        add(&name, format!("timestamp_to_{field}_with_tz"), true, "timestamp;string", "int");
    }
    for format in FORMATS {
        add(&format!("format.{format}"), format!("format.{format}"), false, "-", "kubernetes.NamedFormat");
    }
    all
}

/// Parses the notation of the table.
fn type_named(name: &str) -> CelType {
    if let Some((constructor, inner)) = name.strip_suffix(')').and_then(|name| name.split_once('(')) {
        return match constructor {
            "list" => CelType::list(type_named(inner)),
            "opt" => CelType::optional(type_named(inner)),
            "type" => CelType::Meta(std::sync::Arc::new(type_named(inner))),
            _ => {
                let (key, value) = inner.split_once(',').unwrap_or((inner, "dyn"));
                CelType::map(type_named(key), type_named(value))
            }
        };
    }
    match name {
        "A" => CelType::Variable(0),
        "B" => CelType::Variable(1),
        "bool" => CelType::Bool,
        "int" => CelType::Int,
        "uint" => CelType::Uint,
        "double" => CelType::Double,
        "string" => CelType::String,
        "bytes" => CelType::Bytes,
        "duration" => CelType::Duration,
        "timestamp" => CelType::Timestamp,
        "net.IP" => CelType::Named("net.IP"),
        "net.CIDR" => CelType::Named("net.CIDR"),
        "kubernetes.URL" => CelType::Named("kubernetes.URL"),
        "kubernetes.Quantity" => CelType::Named("kubernetes.Quantity"),
        "kubernetes.Semver" => CelType::Named("kubernetes.Semver"),
        "kubernetes.NamedFormat" => CelType::Named("kubernetes.NamedFormat"),
        "Authorizer" => CelType::Named("kubernetes.authorization.Authorizer"),
        "PathCheck" => CelType::Named("kubernetes.authorization.PathCheck"),
        "GroupCheck" => CelType::Named("kubernetes.authorization.GroupCheck"),
        "ResourceCheck" => CelType::Named("kubernetes.authorization.ResourceCheck"),
        "Decision" => CelType::Named("kubernetes.authorization.Decision"),
        _ => CelType::Dyn,
    }
}

impl Overload {
    /// Returns the parameter and result types with fresh type variables.
    pub(super) fn instantiate(&self, bindings: &mut Bindings) -> (Vec<CelType>, CelType) {
        let mut fresh: [Option<CelType>; 2] = [None, None];
        let params = self.params.iter().map(|param| renamed(param, &mut fresh, bindings)).collect();
        (params, renamed(&self.result, &mut fresh, bindings))
    }
}

fn renamed(ty: &CelType, fresh: &mut [Option<CelType>; 2], bindings: &mut Bindings) -> CelType {
    match ty {
        CelType::Variable(index) => match fresh.get_mut(*index) {
            Some(slot) => slot.get_or_insert_with(|| bindings.fresh()).clone(),
            None => CelType::Dyn,
        },
        CelType::List(of) => CelType::list(renamed(of, fresh, bindings)),
        CelType::Optional(of) => CelType::optional(renamed(of, fresh, bindings)),
        CelType::Meta(of) => CelType::Meta(std::sync::Arc::new(renamed(of, fresh, bindings))),
        CelType::Map(key, value) => {
            CelType::map(renamed(key, fresh, bindings), renamed(value, fresh, bindings))
        }
        other => other.clone(),
    }
}

/// Returns the type that a name denotes in an expression.
pub(super) fn type_ident(name: &str) -> Option<CelType> {
    Some(match name {
        "bool"
        | "int"
        | "uint"
        | "double"
        | "string"
        | "bytes"
        | "net.IP"
        | "net.CIDR"
        | "kubernetes.URL"
        | "kubernetes.Quantity"
        | "kubernetes.Semver"
        | "kubernetes.NamedFormat" => type_named(name),
        "list" => CelType::list(CelType::Dyn),
        "map" => CelType::map(CelType::Dyn, CelType::Dyn),
        "null_type" => CelType::Null,
        "type" => CelType::Meta(std::sync::Arc::new(CelType::Dyn)),
        "optional_type" => CelType::optional(CelType::Dyn),
        "google.protobuf.Timestamp" => CelType::Timestamp,
        "google.protobuf.Duration" => CelType::Duration,
        _ => return None,
    })
}

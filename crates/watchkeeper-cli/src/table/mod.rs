//! `watchkeeper get` and `watchkeeper watch`: a table of any resource, from an informer's cache and its
//! indexes.

mod columns;
mod grouping;
mod render;
mod screen;

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::mpsc;
use watchkeeper::{
    client::discovery::{RestMapper, RestMapping},
    informer::{
        Index,
        handler::{HandlerOptions, Registration},
        status::Status,
    },
    kube_core::{DynamicObject, TypeMeta},
    prelude::*,
};

pub use self::grouping::Grouping;
pub(crate) use self::screen::Size;
use self::{
    columns::Column,
    render::{Row, Table},
    screen::Screen,
};
use crate::{
    cluster::{Cluster, ClusterArguments, Target},
    escape,
    exit::Failure,
    stop, terminal,
};

/// The time limit of the initial list.
const SYNC_WITHIN: Duration = Duration::from_mins(1);
/// The minimum interval between two frames on a terminal.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// The interval at which ages are updated without other changes.
const AGES_EVERY: Duration = Duration::from_secs(5);
/// The number of changes that may wait to be printed.
const CHANGES: usize = 256;
/// The index that rows are read from.
const INDEX: &str = "rows";

/// The arguments of `get` and `watch`.
#[derive(Debug, Clone, clap::Args)]
pub struct TableArguments {
    /// The resource: plural, singular or short name, or `plural.group`.
    resource: String,
    /// The name of one object; all by default.
    name: Option<String>,
    /// The namespace; the one of the context by default.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Lists all namespaces.
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// The label selector: `app=web,tier!=db`.
    #[arg(long, short = 'l', value_name = "LABELS")]
    selector: Option<String>,
    /// The field selector: `spec.nodeName=node-1`.
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// Groups rows by an index: `namespace`, `node`, `owner` or `label=KEY`.
    #[arg(long, value_name = "INDEX")]
    by: Option<Grouping>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// The output format of `get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// A table with one row per object.
    #[default]
    Table,
    /// A line `resource/name` per object.
    Name,
    /// All objects as one JSON list.
    Json,
    /// All objects as one YAML list.
    Yaml,
}

/// Prints the current objects.
///
/// # Errors
/// Returns a [`Failure`] if the cluster cannot be queried, or the output cannot be written.
pub async fn get(arguments: &TableArguments, form: Form) -> Result<(), Failure> {
    let (following, _changes) = Following::start(arguments).await?;
    let objects = following.objects();
    if let (Some(name), true) = (&arguments.name, objects.is_empty()) {
        return Err(Failure::NotFound(format!("there is no {} {name:?}", following.mapping.kind.kind)));
    }
    let mut out = anstream::stdout();
    match form {
        Form::Table if objects.is_empty() => writeln!(anstream::stderr(), "{}", following.nothing_found())?,
        Form::Table => write!(out, "{}", following.table(Timestamp::now()).text())?,
        Form::Name => {
            for object in &objects {
                let name = format!("{}/{}", following.mapping.resource.resource, object.name_any());
                writeln!(out, "{}", escape::line(&name))?;
            }
        }
        Form::Json => {
            writeln!(out, "{}", json_text(&following.list())?)?;
        }
        Form::Yaml => write!(out, "{}", yaml_text(&following.list())?)?,
    }
    out.flush()?;
    following.end().await;
    Ok(())
}

/// Prints the current objects and their changes until a stop request: in place on a terminal, otherwise one
/// line per change.
///
/// # Errors
/// Returns a [`Failure`] if the cluster cannot be queried, or the output cannot be written.
pub async fn watch(arguments: &TableArguments) -> Result<(), Failure> {
    let (following, changes) = Following::start(arguments).await?;
    let ended = async {
        if terminal::is_interactive() {
            following.draw(changes).await
        } else {
            following.print(changes).await
        }
    };
    let result = tokio::select! {
        result = ended => result,
        () = stop::requested() => Ok(()),
    };
    following.end().await;
    result
}

/// A change, as passed on by the event handler.
struct Changed {
    what: &'static str,
    object: Cached<DynamicObject>,
}

/// An informer of one resource, with the layout of its rows.
struct Following {
    factory: SharedInformerFactory,
    informer: SharedIndexInformer<DynamicObject>,
    _registration: Registration<DynamicObject>,
    index: Index<DynamicObject>,
    mapping: RestMapping,
    columns: Vec<Column>,
    grouping: Grouping,
    has_namespaces: bool,
    place: String,
}

impl Following {
    /// Finds the resource, and waits until its informer has synced.
    async fn start(arguments: &TableArguments) -> Result<(Self, mpsc::Receiver<Changed>), Failure> {
        let Cluster { client, target } = arguments.cluster.connect()?;
        let mapping = RestMapper::new(client.discovery()).find_resource(&arguments.resource).await;
        let mapping = mapping.map_err(|error| Failure::of_mapping(&error, &target))?;
        let columns = columns::of(&client, &mapping).await;
        let is_everywhere = arguments.all_namespaces || !mapping.is_namespaced();
        let namespace = arguments.namespace.as_deref().unwrap_or(client.default_namespace()).to_owned();
        let place = if is_everywhere { "the cluster".to_owned() } else { format!("namespace {namespace}") };
        let scope = scope(arguments, (!is_everywhere).then_some(namespace));

        let factory = SharedInformerFactory::new(client);
        let informer = factory.for_resource_in(&mapping.resource, scope);
        let grouping = arguments.by.clone().unwrap_or(Grouping::None);
        let function = grouping.clone();
        let index = informer.add_index(INDEX, move |object: &DynamicObject| function.values(object));
        let index = index.map_err(|error| Failure::Other(error.to_string()))?;
        // Bounded: if the output is slower than the cluster, the informer coalesces pending changes by key.
        let (sender, changes) = mpsc::channel(CHANGES);
        let handler = move |event: Event<DynamicObject>| {
            let sender = sender.clone();
            async move {
                let what = match &event {
                    Event::Added { .. } => "ADDED",
                    Event::Updated { .. } => "MODIFIED",
                    Event::Deleted(_) => "DELETED",
                    Event::Synced(_) => return,
                };
                // The receiver is gone if the program is ending.
                let _ = sender.send(Changed { what, object: event.object().clone() }).await;
            }
        };
        let registration = informer.add_async_handler(handler, HandlerOptions::default());
        let registration = registration.map_err(|error| Failure::Other(error.to_string()))?;
        factory.start();
        synced(&informer, &target).await?;
        let has_namespaces = is_everywhere && mapping.is_namespaced();
        let following = Self {
            factory,
            informer,
            _registration: registration,
            index,
            mapping,
            columns,
            grouping,
            has_namespaces,
            place,
        };
        Ok((following, changes))
    }

    /// Returns the objects, group by group, each sorted by namespace and name.
    fn objects(&self) -> Vec<Arc<DynamicObject>> {
        self.groups().into_iter().flat_map(|(_, objects)| objects).collect()
    }

    fn groups(&self) -> Vec<(Arc<str>, Vec<Arc<DynamicObject>>)> {
        let mut values = self.index.values();
        values.sort_unstable();
        let group = |value: Arc<str>| {
            let mut objects = self.index.get(&value);
            objects.sort_by_cached_key(|object| (object.namespace(), object.name_any()));
            (value, objects)
        };
        values.into_iter().map(group).collect()
    }

    fn header(&self) -> Vec<String> {
        let group = self.grouping.header();
        let namespace = self.has_namespaces.then(|| "NAMESPACE".to_owned());
        let columns = self.columns.iter().map(|column| column.header.clone());
        let fixed = group.into_iter().chain(namespace).chain(["NAME".to_owned()]);
        fixed.chain(columns).chain(["AGE".to_owned()]).collect()
    }

    fn row(&self, group: &str, object: &DynamicObject, now: Timestamp) -> Row {
        let group = self.grouping.header().map(|_| group.to_owned());
        let namespace = self.has_namespaces.then(|| object.namespace().unwrap_or_default());
        let columns = self.columns.iter().map(|column| column.value(object, now));
        let fixed = group.into_iter().chain(namespace).chain([object.name_any()]);
        fixed.chain(columns).chain([render::age(object, now)]).collect()
    }

    fn table(&self, now: Timestamp) -> Table {
        let mut table = Table::new(self.header());
        for (group, objects) in self.groups() {
            for object in objects {
                table.push(self.row(&group, &object, now));
            }
        }
        table
    }

    /// Returns the objects as a list, with their `apiVersion` and `kind`, which servers omit from list items.
    fn list(&self) -> serde_json::Value {
        let kind = &self.mapping.kind;
        let types = TypeMeta { api_version: kind.api_version(), kind: kind.kind.clone() };
        let typed =
            |object: Arc<DynamicObject>| DynamicObject { types: Some(types.clone()), ..(*object).clone() };
        let items: Vec<DynamicObject> = self.objects().into_iter().map(typed).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn nothing_found(&self) -> String {
        escape::line(&format!("no {} in {}", self.mapping.resource.resource, self.place)).into_owned()
    }

    /// Prints one line per change, starting with one for each object.
    async fn print(&self, mut changes: mpsc::Receiver<Changed>) -> Result<(), Failure> {
        let mut out = anstream::stdout();
        let mut widths = Table::new([vec!["EVENT".to_owned()], self.header()].concat());
        write!(out, "{}", widths.header_text())?;
        out.flush()?;
        while let Some(Changed { what, object }) = changes.recv().await {
            let object = match object.get() {
                Ok(object) => object,
                Err(error) => {
                    writeln!(anstream::stderr(), "{}", escape::line(&error.to_string()))?;
                    continue;
                }
            };
            let group = self.grouping.values(&object).join(",");
            let row = [vec![what.to_owned()], self.row(&group, &object, Timestamp::now())].concat();
            write!(out, "{}", widths.line(row))?;
            out.flush()?;
        }
        Ok(())
    }

    /// Draws the table repeatedly in place.
    async fn draw(&self, mut changes: mpsc::Receiver<Changed>) -> Result<(), Failure> {
        let mut screen = Screen::default();
        let mut out = anstream::stdout();
        loop {
            let table = self.table(Timestamp::now());
            let text = if table.is_empty() { format!("{}\n", self.nothing_found()) } else { table.text() };
            let status =
                format!("{} · {} objects · Ctrl-C ends", self.informer.status().label(), table.len());
            write!(out, "{}", screen.frame(&text, &status, terminal::size()))?;
            out.flush()?;
            tokio::select! {
                changed = changes.recv() => if changed.is_none() { return Ok(()) },
                () = tokio::time::sleep(AGES_EVERY) => {}
            }
            // Changes until the next frame are included in it.
            tokio::time::sleep(REDRAW_EVERY).await;
            while changes.try_recv().is_ok() {}
        }
    }

    async fn end(self) {
        self.factory.shutdown().await;
    }
}

fn scope(arguments: &TableArguments, namespace: Option<String>) -> Scope {
    let mut scope = namespace.map_or_else(Scope::all, Scope::namespace);
    if let Some(labels) = &arguments.selector {
        scope = scope.labels(labels);
    }
    let name = arguments.name.as_ref().map(|name| format!("metadata.name={name}"));
    let fields: Vec<String> = name.into_iter().chain(arguments.field_selector.clone()).collect();
    if !fields.is_empty() {
        scope = scope.fields(fields.join(","));
    }
    scope
}

/// Waits for the initial list, as long as a retry may succeed, because a user is waiting.
async fn synced(informer: &SharedIndexInformer<DynamicObject>, target: &Target) -> Result<(), Failure> {
    let mut status = informer.status_watch();
    let unusable = async {
        let mut is_announced = false;
        let mut now = status.status();
        loop {
            if let Some(failure) = Failure::of_unusable_responses(&now, target) {
                return failure;
            }
            if let Status::Failing { message, is_transient: true, .. } = &now
                && !is_announced
            {
                is_announced = true;
                // Without standard error, the message is part of the final failure.
                let _ =
                    writeln!(anstream::stderr(), "retrying for {SYNC_WITHIN:?}: {}", escape::line(message));
            }
            now = status.changed().await;
        }
    };
    tokio::select! {
        synced = informer.wait_for_sync(Some(SYNC_WITHIN)) => {
            synced.map_err(|error| Failure::of_sync(&error, target))
        }
        failure = unusable => Err(failure),
    }
}

fn json_text(list: &serde_json::Value) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(list).map_err(io::Error::from)?;
    Ok(escape::json(&json).into_owned())
}

/// Returns `list` as YAML, or as JSON if it needs escapes that the YAML writer does not produce. JSON is
/// valid YAML, and all its strings can contain escapes.
fn yaml_text(list: &serde_json::Value) -> Result<String, Failure> {
    let yaml = serde_saphyr::to_string(list)
        .map_err(|error| Failure::Other(format!("cannot write the objects as YAML: {error}")))?;
    if escape::is_needed(&yaml) { json_text(list).map(|json| json + "\n") } else { Ok(yaml) }
}

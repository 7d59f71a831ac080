//! What the tables of commands are made of, and those of events.

use crate::schema::Shape;

/// A resource, or another subject with its own commands.
pub struct Resource {
    /// Word of the command, such as `groups`.
    pub(super) name: &'static str,
    /// What the commands are about.
    pub(super) about: &'static str,
    /// What its UIDPs name; messages show it.
    pub(super) kind: Kind,
    /// Columns of lists, and those that `-o wide` adds.
    pub(super) columns: &'static [Column],
    pub(super) wide: &'static [Column],
    pub(super) verbs: &'static [Verb],
}

/// What a UIDP names, and so how a name is resolved to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Group,
    Role,
    Identity,
    IdentityProvider,
    Repo,
    /// A group or a repository.
    Scope,
    /// Anything with a name.
    Resource,
    /// Only UIDPs name these.
    Unnamed(&'static str),
}

impl Kind {
    /// The word for one of them.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Kind::Group => "group",
            Kind::Role => "role",
            Kind::Identity => "identity",
            Kind::IdentityProvider => "identity provider",
            Kind::Repo => "repository",
            Kind::Scope => "group or repository",
            Kind::Resource => "resource",
            Kind::Unnamed(noun) => noun,
        }
    }
}

/// A column of a list.
pub(super) struct Column {
    /// Head of the column, in lower case.
    pub(super) head: &'static str,
    pub(super) cell: Cell,
}

/// The content of a cell.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// The member at this path of JSON names.
    Path(&'static str),
    /// The path of names of the group that contains the resource.
    Parent,
    /// The path of names of the resource whose UIDP is at this path.
    NamesAt(&'static str),
    /// The last parts of a dotted name at this path, this many.
    End(&'static str, usize),
    /// Counts by name: of each element of the list at a path, the member that names it and the one that counts.
    Counts(&'static str, &'static str, &'static str),
}

/// A column with the member at a path.
pub(super) const fn column(head: &'static str, path: &'static str) -> Column {
    Column { head, cell: Cell::Path(path) }
}

pub(super) const UIDP: Column = column("uidp", "uid");
pub(super) const NAME: Column = column("name", "name");
pub(super) const DESCRIPTION: Column = column("description", "description");
pub(super) const CREATED: Column = column("created", "createTime");
pub(super) const UPDATED: Column = column("updated", "updateTime");
pub(super) const PARENT: Column = Column { head: "group", cell: Cell::Parent };

/// A command: a method, and how it is called.
pub(super) struct Verb {
    pub(super) name: &'static str,
    /// Full name of the method.
    pub(super) method: &'static str,
    pub(super) about: &'static str,
    pub(super) does: Does,
    /// Field that the first argument fills, by its path in the request.
    pub(super) positional: &'static str,
    /// A command line that works; tests run it.
    pub(super) example: &'static str,
}

/// How a method is called, and what is shown of its response.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// All pages of a list.
    List,
    /// The same, with columns of its own.
    ListOf(&'static [Column]),
    /// The list in a response with these columns; other forms than tables have the whole response.
    Rows(&'static [Column]),
    /// One resource, field by field.
    Get,
    /// A new resource, named by a path; shows the values at these paths of JSON names.
    Create(&'static [&'static str]),
    /// The fields that are given; shows the UIDP.
    Update,
    /// Asks for confirmation. The text names what is deleted too, such as ` with its bindings`.
    Delete(&'static str),
    /// A call; shows the response field by field.
    Call,
    /// One text of the response, at this path of JSON names, as it is.
    Text(&'static str),
    /// The same, after this question, which has no question mark.
    Ask(&'static str),
    /// Messages as they come.
    Watch,
    /// The audit log, to its end.
    Export,
    /// Progress as it comes; fails if the last message names a problem.
    Verify,
    /// A decision, with the path that led to it.
    Explain,
}

impl Verb {
    /// Whether the command prints all pages of a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.does, Does::List | Does::ListOf(_))
    }

    /// What the command prints as JSON, unless it prints nothing or documents of another form.
    pub(super) fn shape(&self) -> Option<Shape> {
        match self.does {
            Does::List | Does::ListOf(_) => Some(Shape::List(self.method)),
            Does::Rows(_)
            | Does::Get
            | Does::Call
            | Does::Text(_)
            | Does::Ask(_)
            | Does::Create(_)
            | Does::Update
            | Does::Explain => Some(Shape::Response(self.method)),
            Does::Watch | Does::Export | Does::Verify => Some(Shape::Lines(self.method)),
            Does::Delete(_) => None,
        }
    }
}

pub(super) const EVENTS: &[Resource] = &[
    Resource {
        name: "subscriptions",
        about: "Subscriptions to the events of a group",
        kind: Kind::Unnamed("subscription"),
        columns: &[UIDP, PARENT, column("sink", "sink")],
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "chainguard.platform.events.v2.SubscriptionsService.ListSubscriptions",
                about: "List subscriptions",
                does: Does::List,
                positional: "",
                example: "events subscriptions list --parent acme",
            },
            Verb {
                name: "get",
                method: "chainguard.platform.events.v2.SubscriptionsService.GetSubscription",
                about: "Show a subscription",
                does: Does::Get,
                positional: "uid",
                example: "events subscriptions get $SUBSCRIPTION",
            },
            Verb {
                name: "create",
                method: "chainguard.platform.events.v2.SubscriptionsService.CreateSubscription",
                about: "Subscribe an address to the events of a group and everything below it; prints the UIDP",
                does: Does::Create(&["uid"]),
                positional: "",
                example: "events subscriptions create --parent acme --sink https://hooks.example.com/bowline",
            },
            Verb {
                name: "test",
                method: "bowline.events.v1.DeliveriesService.TestDelivery",
                about: "Send one test event, and show how the address responds",
                does: Does::Call,
                positional: "uid",
                example: "events subscriptions test $SUBSCRIPTION",
            },
            Verb {
                name: "pause",
                method: "bowline.events.v1.DeliveriesService.Pause",
                about: "Stop deliveries; events wait for a week at most",
                does: Does::Call,
                positional: "uid",
                example: "events subscriptions pause $SUBSCRIPTION",
            },
            Verb {
                name: "resume",
                method: "bowline.events.v1.DeliveriesService.Resume",
                about: "Continue deliveries, with the events that waited",
                does: Does::Call,
                positional: "uid",
                example: "events subscriptions resume $SUBSCRIPTION",
            },
            Verb {
                name: "delete",
                method: "chainguard.platform.events.v2.SubscriptionsService.DeleteSubscription",
                about: "Delete a subscription",
                does: Does::Delete(" with its waiting deliveries"),
                positional: "uid",
                example: "events subscriptions delete $SUBSCRIPTION --yes",
            },
        ],
    },
    Resource {
        name: "deliveries",
        about: "State and dead letters of a subscription's deliveries",
        kind: Kind::Unnamed("subscription"),
        columns: &[
            column("event", "eventId"),
            column("type", "eventType"),
            column("subject", "subject"),
            column("given up", "deathTime"),
            column("error", "lastError"),
        ],
        wide: &[column("event time", "eventTime"), column("redelivery", "redeliverTime")],
        verbs: &[
            Verb {
                name: "status",
                method: "bowline.events.v1.DeliveriesService.GetDeliveryStatus",
                about: "Show how many events wait, since when, and the last error",
                does: Does::Get,
                positional: "uid",
                example: "events deliveries status $SUBSCRIPTION",
            },
            Verb {
                name: "list",
                method: "bowline.events.v1.DeliveriesService.ListDeadLetters",
                about: "List dead letters: events whose delivery was given up",
                does: Does::List,
                positional: "uid",
                example: "events deliveries list $SUBSCRIPTION",
            },
            Verb {
                name: "redeliver",
                method: "bowline.events.v1.DeliveriesService.Redeliver",
                about: "Deliver dead letters again: one event, or all",
                does: Does::Call,
                positional: "uid",
                example: "events deliveries redeliver $SUBSCRIPTION --all",
            },
        ],
    },
    Resource {
        name: "attempts",
        about: "The last delivery attempts of a subscription",
        kind: Kind::Unnamed("subscription"),
        columns: &[
            column("number", "number"),
            column("time", "time"),
            column("type", "eventType"),
            column("status", "status"),
            column("duration", "duration"),
            column("error", "error"),
        ],
        wide: &[column("kind", "kind"), column("event", "eventId"), column("subject", "subject")],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.events.v1.DeliveriesService.ListDeliveries",
                about: "List attempts, the newest first",
                does: Does::List,
                positional: "uid",
                example: "events attempts list $SUBSCRIPTION",
            },
            Verb {
                name: "get",
                method: "bowline.events.v1.DeliveriesService.GetDelivery",
                about: "Show an attempt, with what was sent and how the address responded",
                does: Does::Get,
                positional: "uid",
                example: "events attempts get $SUBSCRIPTION --number 1",
            },
        ],
    },
];

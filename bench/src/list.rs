//! Pages of a list among a million repositories.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::Outcome;
use crate::environment::Environment;
use crate::get::bare_rate;
use crate::issuer::Issuer;
use crate::load::{Ask, Asks, Lane, Load, Shape, always};
use crate::sample::{Sample, median};
use crate::seed::{self, Repositories};
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const REPOS: usize = 1_000_000;
const PAGE: usize = 50;
const SHAPE: Shape = Shape::Rest { connections: 32 };
const ROUNDS: usize = 3;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let spread = seed::repositories(environment, 1000, REPOS).await?;
    Lists::open(environment, &spread, &spread.org).await?.measure(environment, table, "in 1,000 groups").await?;
    let single = seed::repositories(environment, 1, REPOS).await?;
    Lists::open(environment, &single, &single.group).await?.measure(environment, table, "in one group").await
}

struct Lists {
    server: Server,
    token: String,
    scope: String,
}

impl Lists {
    async fn open(environment: &Environment, repos: &Repositories, scope: &str) -> Outcome<Lists> {
        let server = Server::start(environment, &repos.directory).await?;
        let issuer = Issuer::start().await?;
        let world = World::prepare(&server, &issuer, Some(repos.org.clone())).await?;
        Ok(Lists { server, token: world.token, scope: scope.into() })
    }

    fn ask(&self, rest: &str) -> Outcome<Ask> {
        let path = format!("/registry/v2/repos?uidp.descendantsOf={}&page_size={PAGE}{rest}", self.scope);
        Ask::get(path, &self.token)
    }

    async fn load(&self, asks: Asks, connections: usize) -> Outcome<Load> {
        Load::open(self.server.api, Shape::Rest { connections }, asks).await
    }

    async fn page(&self, rest: &str) -> Outcome<(Bytes, Value)> {
        let body = Lane::rest(self.server.api).await?.send(self.ask(rest)?).await?;
        let json = serde_json::from_slice(&body)?;
        Ok((body, json))
    }

    async fn measure(&self, environment: &Environment, table: &mut Table, which: &str) -> Outcome<()> {
        let (first, json) = self.page("").await?;
        let total = json["totalCount"].as_str().unwrap_or_default().to_owned();
        if total != REPOS.to_string() {
            return Err(format!("total_count is {total}").into());
        }
        let last = self.last_page().await?;
        self.rate(environment, table, which, &first, &last).await?;
        self.pages(table, &last).await?;
        let mut skips = self.load(always(self.ask("&skip=900000")?), 1).await?;
        skips.one_by_one(20).await?;
        let skips = skips.one_by_one(100).await?;
        table.row("  skip=900000, p99", Unit::Milliseconds, Target::AtMost(20.0), skips.milliseconds(0.99));
        Ok(())
    }

    /// The token of page 20,000, the last one.
    async fn last_page(&self) -> Outcome<String> {
        let before = self.page(&format!("&skip={}", REPOS - 2 * PAGE)).await?.1;
        let token = before["nextPageToken"].as_str().ok_or("no token of the last page")?.to_owned();
        let last = self.page(&format!("&page_token={token}")).await?.1;
        let count = last["repos"].as_array().map_or(0, Vec::len);
        if count == PAGE { Ok(token) } else { Err(format!("the last page has {count} repositories").into()) }
    }

    /// Pages per second: half of the requests for the first page, half for the last one.
    async fn rate(
        &self,
        environment: &Environment,
        table: &mut Table,
        which: &str,
        first: &Bytes,
        last: &str,
    ) -> Outcome<()> {
        let asks = [self.ask("")?, self.ask(&format!("&page_token={last}"))?];
        let asks: Asks = Arc::new(move |n| asks[n as usize % 2].clone());
        let mut load = Load::open(self.server.api, SHAPE, asks.clone()).await?;
        load.peak(environment.warm_up).await?;
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            rates.push(load.peak(environment.measured).await?);
        }
        let rate = median(rates);
        let bare = bare_rate(environment, SHAPE, first, asks).await?;
        let line = format!("pages of 50 of a million {which}, with the total, REST");
        table.row(&line, Unit::PerSecond, Target::AtLeast(8000.0), rate);
        note(&format!("{} bytes a page; bare echo {bare:.0}/s, share {:.1} %", first.len(), rate / bare * 100.0));
        let sample = load.latency(rate / 2.0, environment.measured).await?;
        note(&format!("p99 at half of peak {:.2} ms", sample.milliseconds(0.99)));
        Ok(())
    }

    async fn pages(&self, table: &mut Table, last: &str) -> Outcome<()> {
        let mut first = self.load(always(self.ask("")?), 1).await?;
        let mut deep = self.load(always(self.ask(&format!("&page_token={last}"))?), 1).await?;
        first.one_by_one(200).await?;
        deep.one_by_one(200).await?;
        let (mut firsts, mut deeps) = (Vec::new(), Vec::new());
        let middle = |sample: Sample| sample.microseconds(0.5);
        for _ in 0..9 {
            firsts.push(middle(first.one_by_one(200).await?));
            deeps.push(middle(deep.one_by_one(200).await?));
        }
        let (first, deep) = (median(firsts), median(deeps));
        table.row("  page 20,000 by token against page 1", Unit::Times, Target::AtMost(1.3), deep / first);
        note(&format!("one at a time: page 1 {first:.0} us, page 20,000 {deep:.0} us"));
        Ok(())
    }
}

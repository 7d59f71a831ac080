// Subscriptions to events, and the operator's own pages.
// Without a path, which may hold a secret: pages do not show it, and no line has it.
const sinkOf = (name) => `https://${name}.example`;
const subscription = (name) => async (w) => {
  w.ids[name] = (await w.post(`/events/v2/subscriptions/${w.ids.org}`, { sink: sinkOf(name) })).uid;
};
const statusOf = (w, name) => w.get(`/events/bowline/v1/deliveryStatus/${w.ids[name]}`);
const taskRan = async (w, name) => (await w.get('/operator/v1/tasks')).tasks.find((task) => task.name === name).lastRunTime;

const events = [
  {
    name: 'a subscription is created',
    way: ['Subscriptions', 'Create a subscription'],
    fill: () => ({ 'subscription.sink': sinkOf('created') }),
    proof: async (w) => {
      const { subscriptions } = await w.get(`/events/v2/subscriptions?uidp.childrenOf=${w.ids.org}`);
      return [subscriptions.filter((one) => one.sink.includes('created')).map((one) => one.sink), [sinkOf('created')]];
    },
  },
  {
    name: 'a test event is sent',
    given: subscription('tested'),
    way: ['Subscriptions', sinkOf('tested'), 'Send a test event'],
    proof: async (w) => {
      const { deliveries } = await w.get(`/events/bowline/v1/subscriptions/${w.ids.tested}/deliveries`);
      return [deliveries.map((one) => one.kind).filter((kind) => kind === 'DELIVERY_KIND_TEST'), ['DELIVERY_KIND_TEST']];
    },
  },
  {
    name: 'a subscription is paused',
    given: subscription('paused'),
    way: ['Subscriptions', sinkOf('paused'), 'Pause'],
    proof: async (w) => [Boolean((await statusOf(w, 'paused')).pauseTime), true],
  },
  {
    name: 'a subscription is resumed',
    given: async (w) => {
      await subscription('resumed')(w);
      await w.post(`/events/bowline/v1/subscriptions/${w.ids.resumed}:pause`, {});
    },
    way: ['Subscriptions', sinkOf('resumed'), 'Resume'],
    proof: async (w) => [Boolean((await statusOf(w, 'resumed')).pauseTime), false],
  },
  {
    name: 'a subscription is deleted',
    given: subscription('deleted'),
    way: ['Subscriptions', sinkOf('deleted'), 'Delete'],
    confirm: (w) => w.ids.deleted,
    proof: async (w) => [await w.status(`/events/v2/subscriptions/${w.ids.deleted}`), 404],
  },
];

const operator = [
  {
    name: 'a task is run',
    given: async (w) => { w.ran = await taskRan(w, 'verification'); },
    way: ['The server', ['verification', 'Run']],
    isLater: true,
    proof: async (w) => [await taskRan(w, 'verification') !== w.ran, true],
  },
];

export const activity = [...events, ...operator];

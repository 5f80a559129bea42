// What osls needs to know of this service.

// It lacks these steps, which `npm run deploy -- --stage <stage>` has (cli/operate/deploy.py); that sets
// LAKEGATE_DEPLOYS for the osls that it starts.
const LACKS = {
  'before:deploy:deploy':
    'This command does not check for data loss, upload the job\'s code or run the smoke test. '
    + '`npm run deploy -- --stage <stage>` does all of it.',
  'before:remove:remove':
    'The buckets, the ledger and the logs stay, outside any stack. '
    + '`npm run deploy -- --stage <stage>` takes them into the next one.',
}

module.exports = class Lakegate {
  constructor(serverless, options, { log }) {
    this.hooks = { 'before:deploy:function:deploy': () => keepSettings(serverless, options) }
    if (process.env.LAKEGATE_DEPLOYS) return
    for (const [event, text] of Object.entries(LACKS)) this.hooks[event] = () => log.warning(text)
  }
}

// `deploy function` would look for a role named like its logical id, and empty the environment,
// which serverless.yml takes from template.yaml only for the whole stack.
function keepSettings(serverless, options) {
  const deployed = serverless.service.provider.remoteFunctionData.Configuration
  const described = serverless.service.getFunction(options.function)
  described.role = deployed.Role
  described.environment = deployed.Environment.Variables
}

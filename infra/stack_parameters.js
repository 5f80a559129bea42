// The parameters of template.yaml for a stage, as `lakegate deploy` gives them too: where the
// platform's facts are (SSM parameters are named after the template's), and what
// stages/<stage>.yml says otherwise. That file may also have parameters of infra/platform.yml.
const kebab = (name) => name.replace(/(?<=.)(?=[A-Z])/g, '-').toLowerCase()

module.exports = async ({ resolveVariable }) => {
  const stage = await resolveVariable('sls:stage')
  const known = await resolveVariable('file(template.yaml):Parameters')
  const chosen = (await resolveVariable(`file(stages/${stage}.yml), null`)) ?? {}
  const facts = Object.entries(known)
    .filter(([, parameter]) => parameter.Type.startsWith('AWS::SSM::Parameter::Value<'))
    .map(([name]) => [name, `/lakegate/${stage}/${kebab(name)}`])
  return Object.entries({ ...Object.fromEntries(facts), ...chosen, Stage: stage })
    .filter(([name]) => name in known)
    .map(([name, value]) => ({ ParameterKey: name, ParameterValue: String(value) }))
}

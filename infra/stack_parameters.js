// The parameters of template.yaml that `stages/<stage>.yml` gives, as CloudFormation takes them.
module.exports = async ({ resolveVariable }) => {
  const stage = await resolveVariable('sls:stage')
  const given = await resolveVariable(`file(stages/${stage}.yml)`)
  const known = await resolveVariable('file(template.yaml):Parameters')
  return Object.entries(given)
    .filter(([name]) => name in known)
    .map(([name, value]) => ({ ParameterKey: name, ParameterValue: String(value) }))
}

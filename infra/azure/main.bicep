// Two SharePoint farms that differ in SQL Server's disks: dev on Standard disks, prod on Premium SSD.
// Each is a resource group of its own. README.md says how to deploy them, what they cost, and how to delete them.
targetScope = 'subscription'

@description('The region of the dev farm.')
param devLocation string

@description('The region of the prod farm. The published experiment had two regions; one is a fairer comparison.')
param prodLocation string = devLocation

@description('Tags of all resources, as for your bills.')
param tags object = {}

@description('Machine type of the dev farm. The published experiment had Standard_D12; many regions offer only newer ones, such as Standard_D12_v2.')
param devMachine string = 'Standard_D12'

@description('Machine type of the prod farm; Premium SSD needs one with an s in its name.')
param prodMachine string = 'Standard_DS12'

@description('SQL Server\'s log and data disks of the dev farm: type, size, and disks in each stripe.')
param devSqlDisk object = { sku: 'Standard_LRS', sizeGB: 1024, stripes: 4 }

@description('SQL Server\'s log and data disks of the prod farm. A P30 is a Premium SSD of 1 TiB.')
param prodSqlDisk object = { sku: 'Premium_LRS', sizeGB: 1024, stripes: 1 }

@description('The index disks of both farms\' search servers.')
param indexDisk object = { sku: 'Standard_LRS', sizeGB: 1024, stripes: 4 }

@description('The name of the machines\' administrator.')
param adminUsername string

@secure()
@description('The password of the machines\' administrator.')
param adminPassword string

@description('The addresses from which Pinchpoint reaches the farms, such as 10.9.0.0/24.')
param source string

@description('When the machines are shut down every day (UTC), such as 1900; empty: never.')
param shutdownAt string = '1900'

@description('Your prices in cents: a machine for an hour, and one disk of each kind for a month. 0: not given.')
param prices object = { devMachineHour: 0, prodMachineHour: 0, devSqlDiskMonth: 0, prodSqlDiskMonth: 0, indexDiskMonth: 0, osDiskMonth: 0 }

resource devGroup 'Microsoft.Resources/resourceGroups@2023-07-01' = {
  name: 'pinchpoint-dev'
  location: devLocation
  tags: tags
}

resource prodGroup 'Microsoft.Resources/resourceGroups@2023-07-01' = {
  name: 'pinchpoint-prod'
  location: prodLocation
  tags: tags
}

module dev 'farm.bicep' = {
  name: 'dev'
  scope: devGroup
  params: {
    location: devLocation
    tags: tags
    machine: devMachine
    sqlDisk: devSqlDisk
    indexDisk: indexDisk
    adminUsername: adminUsername
    adminPassword: adminPassword
    source: source
    shutdownAt: shutdownAt
    addressPrefix: '10.71.0.0/24'
    machineHour: prices.devMachineHour
    sqlDiskMonth: prices.devSqlDiskMonth
    indexDiskMonth: prices.indexDiskMonth
    osDiskMonth: prices.osDiskMonth
  }
}

module prod 'farm.bicep' = {
  name: 'prod'
  scope: prodGroup
  params: {
    location: prodLocation
    tags: tags
    machine: prodMachine
    sqlDisk: prodSqlDisk
    indexDisk: indexDisk
    adminUsername: adminUsername
    adminPassword: adminPassword
    source: source
    shutdownAt: shutdownAt
    addressPrefix: '10.72.0.0/24'
    machineHour: prices.prodMachineHour
    sqlDiskMonth: prices.prodSqlDiskMonth
    indexDiskMonth: prices.indexDiskMonth
    osDiskMonth: prices.osDiskMonth
  }
}

@description('Resource ids, for the collector azure in dev.yaml.')
output devMachines object = dev.outputs.machines

@description('Resource ids, for the collector azure in prod.yaml.')
output prodMachines object = prod.outputs.machines

@description('What both farms cost in a month of 730 hours, in the units of the prices; with disks alone while all machines are stopped.')
output centsPerMonth object = {
  running: dev.outputs.centsPerMonth + prod.outputs.centsPerMonth
  stopped: dev.outputs.centsPerMonthStopped + prod.outputs.centsPerMonthStopped
}

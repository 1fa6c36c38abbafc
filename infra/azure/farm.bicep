// One farm: a web server, two search servers and a SQL Server, with their disks, in a network of their own.
// The machines are Windows Server alone: the domain, SQL Server and SharePoint are installed as on any other.

param location string
param tags object
param machine string
param sqlDisk object
param indexDisk object
param adminUsername string

@secure()
param adminPassword string

param source string
param shutdownAt string
param addressPrefix string
param machineHour int
param sqlDiskMonth int
param indexDiskMonth int
param osDiskMonth int

// LUNs count from 0: on sql1 the log's stripe, then that of the data; on search servers that of the index.
var sqlDisks = [for lun in range(0, 2 * sqlDisk.stripes): {
  name: 'sql1-${lun < sqlDisk.stripes ? 'log' : 'data'}-${lun}'
  lun: lun
  createOption: 'Empty'
  deleteOption: 'Delete'
  caching: 'None'
  diskSizeGB: sqlDisk.sizeGB
  managedDisk: {
    storageAccountType: sqlDisk.sku
  }
}]

var hosts = [
  { name: 'web1', index: false, sql: false }
  { name: 'app3', index: true, sql: false }
  { name: 'app4', index: true, sql: false }
  { name: 'sql1', index: false, sql: true }
]

resource rules 'Microsoft.Network/networkSecurityGroups@2023-09-01' = {
  name: 'farm'
  location: location
  tags: tags
  properties: {
    securityRules: [
      {
        name: 'pinchpoint'
        properties: {
          description: 'WinRM over TLS, SQL Server and remote desktop, from where Pinchpoint runs'
          priority: 100
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: source
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRanges: [
            '443'
            '1433'
            '3389'
            '5986'
          ]
        }
      }
    ]
  }
}

resource network 'Microsoft.Network/virtualNetworks@2023-09-01' = {
  name: 'farm'
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [
        addressPrefix
      ]
    }
    subnets: [
      {
        name: 'hosts'
        properties: {
          addressPrefix: addressPrefix
          networkSecurityGroup: {
            id: rules.id
          }
        }
      }
    ]
  }
}

resource interfaces 'Microsoft.Network/networkInterfaces@2023-09-01' = [for host in hosts: {
  name: host.name
  location: location
  tags: tags
  properties: {
    ipConfigurations: [
      {
        name: 'first'
        properties: {
          privateIPAllocationMethod: 'Dynamic'
          subnet: {
            id: network.properties.subnets[0].id
          }
        }
      }
    ]
  }
}]

resource machines 'Microsoft.Compute/virtualMachines@2023-09-01' = [for (host, i) in hosts: {
  name: host.name
  location: location
  tags: tags
  properties: {
    hardwareProfile: {
      vmSize: machine
    }
    osProfile: {
      computerName: host.name
      adminUsername: adminUsername
      adminPassword: adminPassword
    }
    storageProfile: {
      imageReference: {
        publisher: 'MicrosoftWindowsServer'
        offer: 'WindowsServer'
        sku: '2022-datacenter-azure-edition'
        version: 'latest'
      }
      osDisk: {
        name: '${host.name}-os'
        createOption: 'FromImage'
        deleteOption: 'Delete'
        managedDisk: {
          storageAccountType: 'StandardSSD_LRS'
        }
      }
      dataDisks: host.sql ? sqlDisks : map(range(0, host.index ? indexDisk.stripes : 0), lun => {
        name: '${host.name}-index-${lun}'
        lun: lun
        createOption: 'Empty'
        deleteOption: 'Delete'
        caching: 'None'
        diskSizeGB: indexDisk.sizeGB
        managedDisk: {
          storageAccountType: indexDisk.sku
        }
      })
    }
    networkProfile: {
      networkInterfaces: [
        {
          id: interfaces[i].id
          properties: {
            deleteOption: 'Delete'
          }
        }
      ]
    }
  }
}]

// A machine that is forgotten costs no more than until the next evening.
resource shutdowns 'Microsoft.DevTestLab/schedules@2018-09-15' = [for (host, i) in hosts: if (!empty(shutdownAt)) {
  name: 'shutdown-computevm-${host.name}'
  location: location
  tags: tags
  properties: {
    status: 'Enabled'
    taskType: 'ComputeVmShutdownTask'
    dailyRecurrence: {
      time: shutdownAt
    }
    timeZoneId: 'UTC'
    targetResourceId: machines[i].id
  }
}]

var diskCents = 2 * sqlDisk.stripes * sqlDiskMonth + 2 * indexDisk.stripes * indexDiskMonth + length(hosts) * osDiskMonth

output machines object = toObject(hosts, host => host.name, host => resourceId('Microsoft.Compute/virtualMachines', host.name))
output centsPerMonth int = diskCents + 730 * length(hosts) * machineHour
output centsPerMonthStopped int = diskCents

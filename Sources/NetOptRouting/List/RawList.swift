/// A list as its JSON has it, before any rule is checked: each member is present, missing, or of another
/// type. So one pass reads both valid and invalid lists and finds all faults.
struct RawList {
  /// A member of an object as it was found: `missing`, with a `value` of the expected JSON type, or with a
  /// value of another type.
  enum Field<Value> {
    case missing
    case value(Value)
    case wrongType
  }

  /// The hosts in the order of their names.
  struct Hosts {
    /// Each host name with its entry. A duplicate name has one entry here.
    let entries: [(name: String, host: Field<Host>)]
  }

  /// The members of `refresh`.
  struct Refresh {
    var url = Field<String>.missing
    var every = Field<String>.missing
  }

  /// The members of a host's entry.
  struct Host {
    var port = Field<Int64>.missing
    var health = Field<Health>.missing
    var endpoints = Field<Endpoints>.missing
  }

  /// The members of a host's `health`.
  struct Health {
    var path = Field<String>.missing
    var expect = Field<Int64>.missing
  }

  /// The endpoints of a host.
  struct Endpoints {
    /// The first endpoints, at most `EndpointList.maximumEndpoints`. The others are not read.
    let elements: [Field<Endpoint>]
    /// The number of endpoints in the JSON array, read or not.
    let count: Int
  }

  /// The members of an endpoint.
  struct Endpoint {
    var ip = Field<String>.missing
    var region = Field<String>.missing
    var isp = Field<String>.missing
    var weight = Field<Int64>.missing
  }

  var schema = Field<Int64>.missing
  var serial = Field<Int64>.missing
  var issued = Field<String>.missing
  var expires = Field<String>.missing
  var refresh = Field<Refresh>.missing
  var hosts = Field<Hosts>.missing

  /// Reads the members of the list. `nil` when the document is not an object.
  init?(_ document: JSONDocument) {
    guard document.root.kind == .object else { return nil }
    document.root.forEachMember { key, value in
      if key.isKey("schema") { schema = value.number }
      if key.isKey("serial") { serial = value.number }
      if key.isKey("issued") { issued = value.string }
      if key.isKey("expires") { expires = value.string }
      if key.isKey("refresh") { refresh = value.object(RawList.Refresh.init) }
      if key.isKey("hosts") { hosts = value.object(RawList.Hosts.init) }
    }
  }
}

extension RawList.Refresh {
  init(_ object: JSONElement) {
    object.forEachMember { key, value in
      if key.isKey("url") { url = value.string }
      if key.isKey("every") { every = value.string }
    }
  }
}

extension RawList.Hosts {
  init(_ object: JSONElement) {
    var entries: [(name: String, host: RawList.Field<RawList.Host>)] = []
    entries.reserveCapacity(object.count)
    object.forEachMember { key, value in entries.append((key.text ?? "", value.object(RawList.Host.init))) }
    entries.sort { $0.name < $1.name }
    // Duplicate keys were reported when the JSON was read.
    self.entries = entries.indices.filter { $0 == 0 || entries[$0].name != entries[$0 - 1].name }.map {
      entries[$0]
    }
  }
}

extension RawList.Host {
  init(_ object: JSONElement) {
    object.forEachMember { key, value in
      if key.isKey("port") { port = value.number }
      if key.isKey("health") { health = value.object(RawList.Health.init) }
      if key.isKey("endpoints") {
        endpoints = value.kind == .array ? .value(RawList.Endpoints(value)) : .wrongType
      }
    }
  }
}

extension RawList.Health {
  init(_ object: JSONElement) {
    object.forEachMember { key, value in
      if key.isKey("path") { path = value.string }
      if key.isKey("expect") { expect = value.number }
    }
  }
}

extension RawList.Endpoints {
  init(_ array: JSONElement) {
    var elements: [RawList.Field<RawList.Endpoint>] = []
    elements.reserveCapacity(min(array.count, EndpointList.maximumEndpoints))
    array.forEachElement { element in
      if elements.count == EndpointList.maximumEndpoints { return false }
      elements.append(element.object(RawList.Endpoint.init))
      return true
    }
    self.elements = elements
    count = array.count
  }
}

extension RawList.Endpoint {
  init(_ object: JSONElement) {
    object.forEachMember { key, value in
      if key.isKey("ip") { ip = value.string }
      if key.isKey("region") { region = value.string }
      if key.isKey("isp") { isp = value.string }
      if key.isKey("weight") { weight = value.number }
    }
  }
}

extension JSONElement {
  /// The value as a member that must be a string.
  fileprivate var string: RawList.Field<String> { text.map { .value($0) } ?? .wrongType }

  /// The value as a member that must be a whole number of 64 bits.
  fileprivate var number: RawList.Field<Int64> { integer.map { .value($0) } ?? .wrongType }

  /// The value as a member that must be an object.
  fileprivate func object<Value>(_ make: (JSONElement) -> Value) -> RawList.Field<Value> {
    kind == .object ? .value(make(self)) : .wrongType
  }
}

/// The members of a list as they are in the JSON, before any rule is checked. Each member is a `Field`, which
/// also stands for a missing member and for one of another type. So one pass over the JSON reads valid and
/// invalid lists, and `ListChecker` then finds all faults.
///
/// The properties have the names of the JSON members (docs/schemas/iplist.schema.json).
struct RawList {
  /// A member of an object as it is in the JSON: it is missing, or it has a value of the expected JSON type
  /// (`value`) or of another type (`wrongType`).
  enum Field<Value> {
    case missing
    case value(Value)
    case wrongType
  }

  /// The members of `hosts`.
  struct Hosts {
    /// Each host name with its entry, sorted by name. A name that is in the JSON several times is here once.
    let entries: [(name: String, host: Field<Host>)]
  }

  /// The members of `refresh`.
  struct Refresh {
    var url = Field<String>.missing
    /// The interval at which clients look for a newer list, as text such as `24h`.
    var every = Field<String>.missing
  }

  /// The members of a host's entry.
  struct Host {
    var port = Field<Int64>.missing
    var health = Field<Health>.missing
    var pins = Field<[Field<String>]>.missing
    var endpoints = Field<Endpoints>.missing
  }

  /// The members of a host's `health`.
  struct Health {
    var path = Field<String>.missing
    /// The response status of a healthy endpoint.
    var expect = Field<Int64>.missing
  }

  /// The elements of `endpoints`.
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
    /// The name of the internet provider whose network the endpoint is in.
    var isp = Field<String>.missing
    var weight = Field<Int64>.missing
  }

  /// The version of the list's format.
  var schema = Field<Int64>.missing
  var serial = Field<Int64>.missing
  var issued = Field<String>.missing
  var expires = Field<String>.missing
  var refresh = Field<Refresh>.missing
  var hosts = Field<Hosts>.missing

  /// Reads the members of a list. `nil` when the root of the document is not an object.
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
      if key.isKey("pins") { pins = value.kind == .array ? .value(RawList.pins(value)) : .wrongType }
      if key.isKey("endpoints") {
        endpoints = value.kind == .array ? .value(RawList.Endpoints(value)) : .wrongType
      }
    }
  }
}

extension RawList {
  /// Reads the elements of `pins`, at most one more than a host may have.
  fileprivate static func pins(_ array: JSONElement) -> [Field<String>] {
    var pins: [Field<String>] = []
    array.forEachElement { element in
      pins.append(element.string)
      return pins.count <= HostEntry.mostPins
    }
    return pins
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
  /// The value as a field that must be a string: `wrongType` for any other value.
  fileprivate var string: RawList.Field<String> { text.map { .value($0) } ?? .wrongType }

  /// The value as a field that must be a whole number of 64 bits: `wrongType` for any other value.
  fileprivate var number: RawList.Field<Int64> { integer.map { .value($0) } ?? .wrongType }

  /// The value as a field that must be an object: `wrongType` for any other value. `make` reads the object.
  fileprivate func object<Value>(_ make: (JSONElement) -> Value) -> RawList.Field<Value> {
    kind == .object ? .value(make(self)) : .wrongType
  }
}

import NetOptCore

extension ClientConfiguration {
  /// Reads `cache`. An object turns the cache on, even if it is empty.
  mutating func readCache(_ object: SettingObject) {
    guard let value = object.member("cache"), let object = SettingObject(value) else { return }
    value.change(to: [:])
    var cache = Cache()
    cache.read(object)
    object.finish()
    self.cache = cache
  }
}

extension ClientConfiguration.Cache {
  fileprivate mutating func read(_ object: SettingObject) {
    if let value = object.member("mode"), let mode = CacheOptions.Mode(reading: value) { options.mode = mode }
    var partition = ""
    object.text("partition", &partition, mayBeEmpty: true)
    options.partition = partition
    object.count("max_bytes", &maxBytes, Self.sizes)
    object.file("directory", &directory)
    object.count("max_disk_bytes", &maxDiskBytes, Self.sizes)
    object.duration("max_age_s", &maxAge, Self.ages)
    object.count("max_entry_bytes", &maxEntryBytes, Self.sizes)
    object.count("max_pending_bytes", &maxPendingBytes, Self.sizes)
    object.duration("stale_when_unreachable_s", &staleWhenUnreachable, Self.ages)
    object.texts("seed_packs", &seedPacks, { $0.file() }, "paths")
    // The names are added to the default sets: a file that listed only its own names would let users whose
    // other credentials differ share responses.
    var names: [String] = []
    object.texts("extra_credential_fields", &names, Self.readName, "names of header fields")
    credentialFields.formUnion(names)
    names = []
    object.texts("extra_harmless_fields", &names, Self.readName, "names of header fields")
    harmlessFields.formUnion(names)
  }

  private static func readName(_ value: SettingValue) -> String? {
    guard let text = value.text("the name of a header field") else { return nil }
    if HeaderFields.isToken(text) { return text }
    value.refuse("is not the name of a header field (RFC 9110, section 5.1)")
    return nil
  }
}

extension CacheOptions.Mode {
  /// Reads a mode; `nil` after a fault.
  fileprivate init?(reading value: SettingValue) {
    let objects = " or an object with api or versioned"
    if value.isText {
      guard let word = value.choice(["off", "http"], rest: objects) else { return nil }
      self = word == "off" ? .off : .http
      if word == "off" { value.change(to: .string(word)) }
      return
    }
    guard let object = SettingObject(value, "\"off\", \"http\"\(objects)") else { return nil }
    var mode: Self?
    value.change(to: .string(object.has("api") ? "api" : "versioned"))
    object.exclude("versioned", "api")
    object.object("api") { mode = .api(CacheOptions.Declaration(reading: $0)) }
    object.object("versioned") { mode = .versioned(CacheOptions.Versions(reading: $0)) }
    object.finish()
    guard let mode else {
      if !object.has("api"), !object.has("versioned") { value.refuse("has neither api nor versioned") }
      return nil
    }
    self = mode
  }
}

extension CacheOptions.Declaration {
  fileprivate init(reading object: SettingObject) {
    self.init(timeToLive: nil)
    let ages = ClientConfiguration.Cache.ages
    object.text("name", &name)
    object.duration("time_to_live_s", &timeToLive, ages)
    var within: Duration?
    object.duration("serve_and_refresh_s", &within, ages)
    if let within { expired = .serveAndRefresh(within: within) }
    object.duration("negative_time_to_live_s", &negativeTimeToLive, ages)
  }
}

extension CacheOptions.Versions {
  fileprivate init(reading object: SettingObject) {
    self.init()
    object.text("name", &name)
    object.text("parameter", &parameter)
    var steps = Int(threshold)
    object.count("threshold", &steps, SettingRange(1...Int.max))
    threshold = Int64(steps)
  }
}

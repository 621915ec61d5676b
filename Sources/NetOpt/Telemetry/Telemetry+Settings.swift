import NetOptCore

extension ClientConfiguration.Telemetry {
  /// The permitted values of `sampledShare`.
  static let shares = SettingRange(0.0...1.0, "0 to 1")

  /// Reads the member `telemetry` of a configuration file; `nil` after a fault.
  init?(reading object: SettingObject) {
    object.require("collector", "service_name")
    var name: String?
    object.text("service_name", &name)
    let collector = object.member("collector")?.url()
    var (resource, headers, share) = ([String: String](), HeaderFields(), 1.0)
    if let value = object.member("resource") {
      for (key, entry) in value.members("an object with names of attributes as keys") ?? [] {
        guard let text = entry.text("the value of an attribute", mayBeEmpty: true) else { continue }
        resource[key] = text
        entry.change(to: .string(text))
      }
    }
    object.forbid(
      "headers",
      "does not belong in the file; put the fields into an environment variable, and name the variable in headers_env"
    )
    if let value = object.member("headers_env"), let variable = value.variable() {
      if let fields = Self.headers(variable.value) {
        headers = fields
        value.change(to: .string(variable.name))
      } else {
        value.refuse(
          "names a variable whose value is not of the form of OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value"
        )
      }
    }
    object.number("sampled_share", &share, Self.shares)
    guard let collector, let name else { return nil }
    self.init(collector: collector, serviceName: name)
    (self.resource, self.headers, sampledShare) = (resource, headers, share)
  }

  /// Reads fields in the form of `OTEL_EXPORTER_OTLP_HEADERS`: pairs of name and percent-encoded value
  /// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/); `nil` if they are not in this form.
  static func headers(_ text: String) -> HeaderFields? {
    var fields: HeaderFields = [:]
    for pair in text.utf8.split(separator: 0x2c) {
      guard let equals = pair.firstIndex(of: 0x3d),
        let value = String(
          validating: PercentEncoding.decoded(ByteClass.trimmed(pair[pair.index(after: equals)...])),
          as: UTF8.self)
      else { return nil }
      let field = HeaderField(String(Substring(ByteClass.trimmed(pair[..<equals]))), value)
      guard HeaderFields.fault(of: field) == nil else { return nil }
      fields.append(field)
    }
    return fields
  }
}

import NetOptCore
import TestTools

@testable import NetOpt

extension SettingSample {
  /// The secrets in the variables of the tests whose names are keys of `authorization`.
  static let secrets = ["PASSWORD": "hunter2: password", "OTHER": "hunter2é", "TOKEN": "hunter2.token+/="]

  /// The settings of `defaults`. `api.test` is the name of a header field too.
  static let defaults: [SettingSample] = [
    .init("defaults/timeout_ms", "Defaults.timeout", number(1...31_536_000_000, but: 60_000)) {
      .milliseconds($0.defaults.timeout)
    },
    .init("defaults/headers/api.test", "Defaults.headers", fieldValue) {
      .optional($0.defaults.headers["API.test"])
    },
    .init(
      "defaults/base_url", "Defaults.baseURL",
      word("https://api.test/", "http://api.test:8080/v1", "https://[2001:db8::1]/a/b/;c=%20")
    ) { .optional($0.defaults.baseURL?.description) },
  ]

  /// `cookie_hosts`.
  static let cookies = SettingSample("cookie_hosts", "cookieHosts", { _ in ["192.0.2.1", "a.test"] }) {
    .texts($0.cookieHosts.sorted())
  }

  /// The fields in the variable `OTLP` of the tests.
  static let collectorFields = "x-key=hunter2%20key,x-other=1"

  /// The settings of `telemetry`.
  static let telemetry: [SettingSample] = [
    .init(
      "telemetry/collector", "Telemetry.collector",
      word("http://127.0.0.1:4318/", "https://collector.test/otlp")
    ) { .optional($0.telemetry?.collector.description) },
    .init("telemetry/service_name", "Telemetry.serviceName", text) { .optional($0.telemetry?.serviceName) },
    .init("telemetry/resource/api.test", "Telemetry.resource", fieldValue) {
      .optional($0.telemetry?.resource["api.test"])
    },
    .init("telemetry/headers_env", "Telemetry.headers", word("OTLP")) {
      $0.telemetry?.headers == ["x-key": "hunter2 key", "x-other": "1"] ? "OTLP" : .null
    },
    .init(
      "telemetry/sampled_share", "Telemetry.sampledShare",
      { .number($0.element(of: [0, 0.25, 0.001, 1e-9, 0.999])) }
    ) { .number($0.telemetry?.sampledShare ?? 1) },
  ]

  /// The settings of an entry of `authorization`.
  static func authorization(_ index: Int) -> [SettingSample] {
    let prefix = "authorization/[\(index)]/"
    let get = { @Sendable (configuration: ClientConfiguration) -> ClientConfiguration.Authorization? in
      configuration.authorization.indices.contains(index) ? configuration.authorization[index] : nil
    }
    let hosts: JSONValue = index == 0 ? ["192.0.2.1", "a.test"] : ["b.test"]
    let variables = secrets.keys.sorted()
    /// The name of a variable.
    let draw: Draw = { .string($0.element(of: variables)) }
    let variable = { @Sendable (secret: String?) -> JSONValue in
      .optional(secrets.first { $0.value == secret }?.key)
    }
    return [
      .init(prefix + "hosts", "Authorization.hosts", { _ in hosts }) { .texts(get($0)?.hosts.sorted()) },
      .init(prefix + "basic/user", "authorization", text) { .optional(get($0)?.basic?.user) },
      .init(prefix + "basic/password_env", "authorization", draw) { variable(get($0)?.basic?.password) },
      .init(prefix + "bearer_env", "authorization", draw) { variable(get($0)?.bearer) },
      .init(prefix + "allow_unprotected", "Authorization.allowsUnprotected", flag(true)) {
        .bool(get($0)?.allowsUnprotected == true)
      },
    ]
  }

  private static let fieldValue: Draw = { random in
    random.isOne(in: 4) ? .string("") : text(&random)
  }
}

extension ClientConfiguration.Authorization {
  fileprivate var basic: (user: String, password: String)? {
    if case .basic(let user, let password) = source { (user, password) } else { nil }
  }
  fileprivate var bearer: String? { if case .bearer(let token) = source { token } else { nil } }
}

/// What a client has counted since it was made (`NetOptClient.metrics`).
///
/// The names are those of Prometheus for the names of OpenTelemetry's semantic conventions, where these have
/// one (`http.client.request.duration` is `http_client_request_duration_seconds`), and begin with
/// `netopt_client_` otherwise. The labels have a limited number of values, and contain no path, no query and no
/// header field.
public struct ClientMetrics: Sendable {
  /// A metric and its values.
  struct Metric: Sendable {
    /// The kinds of metrics of Prometheus.
    enum Kind: String, Sendable {
      /// A number that only grows.
      case counter
      /// A number at this moment.
      case gauge
      /// Counts of durations up to some bounds.
      case histogram
      /// A sum of durations, and how many there were.
      case summary
    }

    /// The name, such as `http_client_request_duration_seconds`.
    let name: String
    /// What is counted, in a sentence.
    let help: String
    /// The kind.
    let kind: Kind
    /// The values. A histogram has the samples `_bucket`, whose label `le` is the bound in seconds, `_sum` and
    /// `_count`, and a summary has the last two, as in the text format of Prometheus.
    let samples: [Sample]
  }

  /// A value of a metric.
  struct Sample: Sendable {
    /// The name of the metric, with an ending for the parts of a histogram.
    let name: String
    /// The names and values of the labels.
    let labels: [(name: String, value: String)]
    /// The value.
    let value: Double
  }

  /// The metrics, in a fixed order.
  let metrics: [Metric]

  /// Makes metrics of given values.
  init(_ metrics: [Metric]) { self.metrics = metrics }

  /// Makes metrics without values.
  package init() { metrics = [] }

  /// The metrics in Prometheus' text format, version 0.0.4, to be served as
  /// `text/plain; version=0.0.4; charset=utf-8`, or written to a file for node_exporter's textfile collector.
  public var prometheusText: String {
    var text = ""
    for metric in metrics where !metric.samples.isEmpty {
      text += "# HELP \(metric.name) \(Self.escaped(metric.help, quotes: false))\n"
      text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
      for sample in metric.samples { text += Self.line(sample) }
    }
    return text
  }

  private static func line(_ sample: Sample) -> String {
    let labels = sample.labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }
    let list = labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
    return "\(sample.name)\(list) \(number(sample.value))\n"
  }

  /// A number without an exponent if it is whole, so that people can read it.
  private static func number(_ value: Double) -> String {
    value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
  }

  /// Escapes what the format escapes: the backslash, the end of a line and, in values of labels, the quote.
  private static func escaped(_ text: String, quotes: Bool) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\"" where quotes: escaped += "\\\""
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}

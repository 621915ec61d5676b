import NetOptCore
import NetOptRouting

extension NetOptClient {
  /// What the client has counted since it was made. Sends nothing. Safe from any thread.
  ///
  /// A call is counted when its body has ended or it has failed. The client's own requests, such as probes and
  /// refreshes of the list, are not counted as calls.
  public var metrics: ClientMetrics {
    ClientMetrics(
      callMetrics.current, status(), transport: transportCounts, probes: probeCounts,
      spans: spanExporter?.counts)
  }
}

extension ClientMetrics {
  private static let other = CallMetrics.other
  /// The most endpoints that have gauges of their own.
  static let mostEndpoints = 500

  /// - Parameters:
  ///   - transport: what the transport has counted; `nil` when it counts nothing.
  ///   - spans: what became of the spans; `nil` when the client exports none.
  init(
    _ counts: CallMetrics.Counts, _ status: ClientStatus, transport: TransportCounts? = nil,
    probes: ProbeCounts = ProbeCounts(), spans: (exported: Int, dropped: Int)? = nil
  ) {
    var metrics = Self.ofCalls(counts, status)
    if let transport { metrics += Self.of(transport) }
    metrics.append(
      Self.counter(
        "netopt_client_probes_total", "Samples of probes of endpoints of the list, by outcome.",
        [
          ([("netopt_outcome", "succeeded")], probes.succeeded),
          ([("netopt_outcome", "failed")], probes.failed),
          ([("netopt_outcome", "inconclusive")], probes.inconclusive),
        ]))
    if let spans {
      metrics.append(
        Self.counter(
          "netopt_client_spans_total", "Spans of traces, by whether the collector took them.",
          [
            ([("netopt_outcome", "exported")], spans.exported),
            ([("netopt_outcome", "dropped")], spans.dropped),
          ]))
    }
    self.init(metrics + Self.ofList(status) + Self.ofEndpoints(status))
  }

  private static func ofCalls(_ counts: CallMetrics.Counts, _ status: ClientStatus) -> [Metric] {
    let requests = counts.series.sorted { $0.value < $1.value }.map { series, number in
      (labels(series, counts), counts.requests[number])
    }
    let phases = CallMetrics.phases.enumerated().map { ([("netopt_phase", $1)], counts.phases[$0]) }
    return [
      histogram(
        "http_client_request_duration_seconds", "Duration of calls until the end of the body or the failure.",
        requests),
      histogram(
        "netopt_client_phase_duration_seconds",
        "Durations of the phases of calls whose body has ended; a phase that did not happen is not counted.",
        phases),
      gauge(
        "netopt_client_calls_under_way", "Calls whose response has not begun.",
        [([], Double(status.callsUnderWay))]),
      counter(
        "netopt_client_repeats_total",
        "Retries and hedges that were begun, also those of the cache's refreshes.",
        [([("netopt_reason", "retry")], counts.retries), ([("netopt_reason", "hedge")], counts.hedges)]),
      counter(
        "netopt_client_responses_total",
        "Responses of servers, by whether their connection came from the pool or was new.",
        [([("netopt_connection", "new")], counts.fresh), ([("netopt_connection", "reused")], counts.reused)]),
      counter(
        "netopt_client_cache_lookups_total", "Calls with a response that asked the cache, by outcome.",
        [
          ("hit", counts.cache.hit), ("miss", counts.cache.miss),
          ("revalidated", counts.cache.revalidated), ("stale", counts.cache.stale),
        ].filter { $0.1 > 0 }.map { ([("netopt_outcome", $0.0)], $0.1) }),
    ]
  }

  private static func of(_ transport: TransportCounts) -> [Metric] {
    [
      gauge(
        "netopt_client_open_connections",
        "Connections that are open or being opened, with idle ones and those of probes.",
        [([], Double(transport.openConnections))]),
      counter(
        "netopt_client_connections_total",
        "Connections that were begun, with those of probes and those that failed.",
        [([], transport.connections)]),
      counter(
        "netopt_client_tls_handshakes_total",
        "TLS handshakes with servers, of connections that could carry a request, by whether they resumed a session.",
        [
          ([("netopt_session", "new")], transport.fullHandshakes),
          ([("netopt_session", "resumed")], transport.resumedHandshakes),
        ]),
      counter(
        "netopt_client_body_bytes_total",
        "Bytes of bodies on the connections, compressed if they are; those of repeated requests count again.",
        [
          ([("network_io_direction", "receive")], transport.receivedBytes),
          ([("network_io_direction", "transmit")], transport.sentBytes),
        ]),
    ]
  }

  private static func ofList(_ status: ClientStatus) -> [Metric] {
    let list = status.list
    return [
      gauge(
        "netopt_client_list_serial", "Serial number of the list.",
        list.serial.map { [([], Double($0))] } ?? []),
      gauge(
        "netopt_client_list_issued_timestamp_seconds", "When the list was issued, in seconds since 1970.",
        list.issued.map { [([], $0.timeIntervalSince1970)] } ?? []),
      gauge(
        "netopt_client_list_expires_timestamp_seconds", "When the list expires, in seconds since 1970.",
        list.expires.map { [([], $0.timeIntervalSince1970)] } ?? []),
      gauge(
        "netopt_client_list_checked_timestamp_seconds",
        "When a refresh of the list last succeeded, in seconds since 1970.",
        list.lastCheck.map { [([], $0.timeIntervalSince1970)] } ?? []),
      gauge(
        "netopt_client_host_uses_list",
        "1 when requests to a host of the list use its endpoints, 0 when the list has expired or a proxy is set.",
        status.hosts.prefix(mostEndpoints).map {
          ([("server_address", $0.name), ("server_port", String($0.port))], $0.usesList ? 1 : 0)
        }),
      gauge(
        "netopt_client_list_problem", "1 when there is a problem with the list, such as its expiry.",
        [([], status.listWarning == nil ? 0 : 1)]),
    ]
  }

  private static func ofEndpoints(_ status: ClientStatus) -> [Metric] {
    var all = status.hosts.flatMap { host in
      host.endpoints.map { endpoint in
        (
          labels: [
            ("server_address", host.name), ("server_port", String(host.port)),
            ("network_peer_address", endpoint.address.description),
          ], endpoint: endpoint
        )
      }
    }
    if all.count > mostEndpoints {
      // The avoided ones first, and otherwise the same ones at each scrape.
      all.sort {
        let (a, b) = ($0.endpoint, $1.endpoint)
        return (a.rank == nil) != (b.rank == nil) ? a.rank == nil : a.address < b.address
      }
      all.removeLast(all.count - mostEndpoints)
    }
    return [
      summary(
        "netopt_client_endpoint_wait_seconds",
        "Time until the responses of an endpoint of the list begin, without those with 502, 503 or 504.",
        all.map { labels, endpoint in (labels, endpoint.counts.responses, endpoint.counts.waits) }),
      counter(
        "netopt_client_endpoint_failures_total",
        "Failed connections, requests and probes of an endpoint of the list, by kind or status.",
        all.flatMap { labels, endpoint in
          endpoint.counts.failures.sorted { $0.key < $1.key }.map {
            (labels + [("error_type", $0.key)], $0.value)
          }
        }),
      gauge(
        "netopt_client_endpoint_rtt_seconds", "Smoothed round-trip time of an endpoint of the list.",
        all.compactMap { labels, endpoint in endpoint.rtt.map { (labels, seconds($0)) } }),
      gauge(
        "netopt_client_endpoint_score_seconds",
        "Time by which endpoints are ranked, the lowest first: it contains penalties for failures.",
        all.compactMap { labels, endpoint in endpoint.score.map { (labels, seconds($0)) } }),
      gauge(
        "netopt_client_endpoint_avoided",
        "1 when requests avoid an endpoint of the list because of its failures, otherwise 0.",
        all.map { labels, endpoint in (labels, endpoint.rank == nil ? 1 : 0) }),
      gauge(
        "netopt_client_endpoint_avoided_since_timestamp_seconds",
        "Since when an endpoint has been avoided without having worked again, in seconds since 1970.",
        all.compactMap { labels, endpoint in
          // The moment is computed anew each time, with small differences.
          endpoint.avoidedSince.map { (labels, $0.timeIntervalSince1970.rounded()) }
        }),
    ]
  }

  private static func labels(
    _ series: CallMetrics.Series, _ counts: CallMetrics.Counts
  ) -> [(name: String, value: String)] {
    let server = counts.servers[series.server]
    let method = series.method == 0 ? other : CallMetrics.methods[series.method - 1].rawValue
    var labels = [
      (name: "http_request_method", value: method), ("server_address", server?.host ?? other),
      ("server_port", server.map { String($0.port) } ?? other),
    ]
    if series.status > 0 { labels.append(("http_response_status_code", String(series.status))) }
    if series.error >= 0 {
      labels.append(("error_type", counts.errors[series.error] ?? other))
    } else if series.status >= 400 {
      labels.append(("error_type", String(series.status)))
    }
    if let version = series.version {
      labels.append(("network_protocol_version", version.rawValue))
    }
    if series.tag >= 0 { labels.append(("netopt_request_tag", counts.tags[series.tag] ?? other)) }
    return labels
  }

  // MARK: Kinds

  private typealias Labels = [(name: String, value: String)]

  private static func counter(_ name: String, _ help: String, _ values: [(Labels, Int)]) -> Metric {
    Metric(
      name: name, help: help, kind: .counter,
      samples: values.map { Sample(name: name, labels: $0, value: Double($1)) })
  }

  private static func gauge(_ name: String, _ help: String, _ values: some Sequence<(Labels, Double)>)
    -> Metric
  {
    Metric(
      name: name, help: help, kind: .gauge, samples: values.map { Sample(name: name, labels: $0, value: $1) })
  }

  /// - Parameter values: the count and the sum in nanoseconds, with the labels.
  private static func summary(_ name: String, _ help: String, _ values: [(Labels, Int, Int64)]) -> Metric {
    Metric(
      name: name, help: help, kind: .summary,
      samples: values.flatMap { labels, count, sum in
        [
          Sample(name: name + "_sum", labels: labels, value: Double(sum) / 1e9),
          Sample(name: name + "_count", labels: labels, value: Double(count)),
        ]
      })
  }

  private static func histogram(
    _ name: String, _ help: String, _ values: [(Labels, (buckets: [Int], sum: Int64))]
  ) -> Metric {
    var samples: [Sample] = []
    for (labels, histogram) in values {
      var count = 0
      for (index, inBucket) in histogram.buckets.enumerated() {
        count += inBucket
        let bound = index < DurationHistograms.bounds.count ? "\(DurationHistograms.bounds[index])" : "+Inf"
        samples.append(
          Sample(name: name + "_bucket", labels: labels + [("le", bound)], value: Double(count)))
      }
      samples.append(Sample(name: name + "_sum", labels: labels, value: Double(histogram.sum) / 1e9))
      samples.append(Sample(name: name + "_count", labels: labels, value: Double(count)))
    }
    return Metric(name: name, help: help, kind: .histogram, samples: samples)
  }

  private static func seconds(_ duration: Duration) -> Double { Double(duration.nanoseconds) / 1e9 }
}

import NetOptBench
import NetOptCore
import NetOptTestSupport
import Testing

@Suite struct JSONReportTests {
  @Test func aSmallRun() async throws {
    var settings = try Fixtures.settings([Fixtures.impostor], length: .rounds(cold: 2, warm: 0))
    settings.blocks = [.cold]
    let report = await Fixtures.report(settings, choice: Fixtures.impostor) {
      request, number throws(NetOptError) in
      if request.options.routing != .dns { throw .leg(.refused) }
      return .answer(request, .cold(dns: Double(number)))
    }
    let text = String(decoding: JSONReport(report).value.bytes(indented: true), as: UTF8.self)
    #expect(
      text == """
        {
          "schema_version": 1,
          "tool": "netopt bench",
          "version": "0.1.0",
          "run_id": "20260822-7f3a",
          "started_at": "2026-08-22T10:00:00Z",
          "elapsed_us": 213000,
          "argv": [
            "bench",
            "--seed=7",
            "https://api.example.com/v1/ping"
          ],
          "seed": 7,
          "partial": false,
          "stop_reason": "completed",
          "host": {
            "os": "Linux 6.1.0 x86_64",
            "libcurl": "7.88.1",
            "tls": "OpenSSL 3.0.17",
            "cares": "1.18.1"
          },
          "request": {
            "method": "GET",
            "url": "https://api.example.com/v1/ping",
            "http_version": "2"
          },
          "plan": {
            "rounds": {
              "cold": 2,
              "warm": null
            },
            "duration_s": null,
            "warmup": 0
          },
          "rounds": {
            "cold": 2,
            "warm": null
          },
          "targets": [
            {
              "id": "192.0.2.66",
              "kind": "ip",
              "ip": "192.0.2.66",
              "port": 443,
              "region": null,
              "dns_answers": null,
              "excluded": {
                "code": "refused",
                "reason": "connect: refused"
              },
              "tls": null,
              "counts": {
                "ok": 0,
                "http_error": 0,
                "timeout": 0,
                "connect": 0,
                "tls": 0,
                "dns": 0
              },
              "cold": null,
              "warm": null
            },
            {
              "id": "dns",
              "kind": "dns",
              "ip": null,
              "port": 443,
              "region": null,
              "dns_answers": 2,
              "tls": {
                "verified": true,
                "version": "TLSv1.3"
              },
              "counts": {
                "ok": 2,
                "http_error": 0,
                "timeout": 0,
                "connect": 0,
                "tls": 0,
                "dns": 0
              },
              "cold": {
                "n": 2,
                "reused": 0,
                "response_us": {
                  "n": 2,
                  "min": 71000,
                  "max": 72000,
                  "mean": 71500.0,
                  "mad": 0,
                  "percentiles": [],
                  "timeouts": 0
                },
                "phases_us": {
                  "queue": {
                    "n": 2,
                    "min": 0,
                    "max": 0,
                    "mean": 0.0,
                    "mad": 0,
                    "percentiles": []
                  },
                  "dns": {
                    "n": 2,
                    "min": 1000,
                    "max": 2000,
                    "mean": 1500.0,
                    "mad": 0,
                    "percentiles": []
                  },
                  "tcp": {
                    "n": 2,
                    "min": 20000,
                    "max": 20000,
                    "mean": 20000.0,
                    "mad": 0,
                    "percentiles": []
                  },
                  "tls": {
                    "n": 2,
                    "min": 24000,
                    "max": 24000,
                    "mean": 24000.0,
                    "mad": 0,
                    "percentiles": []
                  },
                  "send": {
                    "n": 2,
                    "min": 0,
                    "max": 0,
                    "mean": 0.0,
                    "mad": 0,
                    "percentiles": []
                  },
                  "wait": {
                    "n": 2,
                    "min": 24000,
                    "max": 24000,
                    "mean": 24000.0,
                    "mad": 0,
                    "percentiles": []
                  },
                  "transfer": {
                    "n": 2,
                    "min": 2000,
                    "max": 2000,
                    "mean": 2000.0,
                    "mad": 0,
                    "percentiles": []
                  }
                }
              },
              "warm": null
            }
          ],
          "picker": {
            "chosen": "192.0.2.66",
            "best": null,
            "regret_us": null
          },
          "warnings": []
        }
        """)
  }

  @Test func durationsAreInThePlan() async throws {
    var settings = try Fixtures.settings([], length: .duration(.milliseconds(1500)))
    settings.blocks = [.cold]
    let report = await Fixtures.report(settings) { request, _ in .answer(request) }
    let text = JSONReport(report).value.description
    #expect(text.contains(#""plan":{"rounds":{"cold":null,"warm":null},"duration_s":1.5,"warmup":0}"#))
  }

  @Test func blocksThatWereNotReachedHaveNoRounds() async throws {
    let text = JSONReport(try await Fixtures.dead()).value.description
    #expect(text.contains(#""rounds":{"cold":0,"warm":0},"targets""#))
  }

  @Test(
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() },
    arguments: Situation.allCases)
  func everyReportKeepsToTheSchema(situation: Situation) async throws {
    let document = JSONReport(try await situation.report()).value.bytes()
    #expect(try await JSONSchema.faults(of: String(decoding: document, as: UTF8.self), by: "bench") == "")
  }

  @Test(.enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func theSchemaFindsAKeyThatIsMissing() async throws {
    let text = JSONReport(try await Fixtures.usual()).value.description
    let broken = text.replacing("\"regret_us\"", with: "\"regret\"")
    #expect(try await JSONSchema.faults(of: broken, by: "bench").contains("regret_us"))
  }
}

/// The runs whose reports are checked.
enum Situation: CaseIterable {
  case usual, interrupted, dead, failing, empty

  func report() async throws -> BenchReport {
    switch self {
    case .usual: try await Fixtures.usual()
    case .interrupted: try await Fixtures.interrupted()
    case .dead: try await Fixtures.dead()
    case .failing: try await Fixtures.failing()
    case .empty:
      await Fixtures.report(try Fixtures.settings([], dns: false)) { request, _ in .answer(request) }
    }
  }
}

import NetOpt

/// Requests that are performed by so many tasks, one after the other in each.
struct Load {
  let client: NetOptClient
  /// The questions that each task asks in turn. Tasks begin at different ones.
  let questions: [Question]
  let count: Int
  let streams: Int
  /// Whether the tasks run on the client's loop instead of the default pool.
  let usesLoop: Bool
  /// Whether the time of each request is kept.
  var keepsLatencies = true
  /// What the answers have to be.
  var expectation = Expectation.anything

  struct Outcome: Sendable {
    var failed = 0
    /// Answers that do not belong to their question, or are not whole.
    var wrong = 0
    var latencies: [Int64] = []

    mutating func count(_ answer: Answer) {
      switch answer {
      case .right: return
      case .failed: failed += 1
      case .wrong(let complaint):
        if wrong == 0 { complain("netopt-benchmark: \(complaint)\n") }
        wrong += 1
      }
    }

    mutating func add(_ other: Outcome) {
      failed += other.failed
      wrong += other.wrong
      latencies += other.latencies
    }
  }

  func perform() async -> Outcome {
    await withTaskGroup(of: Outcome.self) { group in
      for stream in 0..<streams {
        let share = count / streams + (stream < count % streams ? 1 : 0)
        group.addTask(executorPreference: usesLoop ? client.loopExecutor : nil) {
          await perform(share, stream: stream)
        }
      }
      return await group.reduce(into: Outcome()) { $0.add($1) }
    }
  }

  private func perform(_ count: Int, stream: Int) async -> Outcome {
    var outcome = Outcome()
    if keepsLatencies { outcome.latencies.reserveCapacity(count) }
    let clock = SystemTimeSource()
    var check = AnswerCheck(expectation)
    for index in 0..<count {
      let start = clock.now()
      let question = questions[(stream + index * 31) % questions.count]
      outcome.count(await Self.answer(question, client, &check))
      if keepsLatencies { outcome.latencies.append((clock.now() - start).microseconds) }
    }
    return outcome
  }

  /// What became of a request.
  enum Answer {
    case right
    case wrong(String)
    case failed
  }

  /// Performs one request, reads its body, and says whether that is the answer.
  static func answer(
    _ question: Question, _ client: NetOptClient, _ check: inout AnswerCheck
  ) async -> Answer {
    check.begin(question)
    do throws(NetOptError) {
      let response = try await client.execute(question.request)
      // Chunk by chunk: the floor does not keep the body either.
      for try await chunk in response.body { check.take(chunk) }
      if response.status >= 400 { return .failed }
      return check.isAnswer(response) ? .right : .wrong(check.complaint(about: response))
    } catch {
      return .failed
    }
  }

  /// Throws unless an origin answers as expected.
  static func expectAnswer(
    _ question: Question, _ client: NetOptClient, _ expectation: Expectation = .anything
  ) async throws {
    var check = AnswerCheck(expectation)
    switch await answer(question, client, &check) {
    case .right: return
    case .wrong(let complaint): throw UsageError("\(question.request.url) gives another answer: \(complaint)")
    case .failed: throw UsageError("\(question.request.url) does not answer")
    }
  }
}

extension Load.Outcome {
  /// The line that all programs print, with what lies between two costs.
  func line(from before: Cost, to after: Cost) -> String {
    let sorted = latencies.sorted()
    func percentile(_ part: Double) -> Int64 {
      sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(part * Double(sorted.count)))]
    }
    return """
      {"requests":\(latencies.count),"failed":\(failed),"wrong":\(wrong),"wall_s":\(after.wallSeconds - before.wallSeconds),\
      "cpu_user_s":\(after.userSeconds - before.userSeconds),"cpu_sys_s":\(after.systemSeconds - before.systemSeconds),\
      "max_rss_kib":\(after.maxResidentKiB),"p50_us":\(percentile(0.5)),"p99_us":\(percentile(0.99))}
      """
  }
}

import Glibc
import Testing
import TestSupport

@testable import LyingServer

extension Behaviour: CustomTestStringConvertible {
  var testDescription: String { name }
}

/// Processes of these tests at a time: some measure time-outs of a second, and two cores are all there is.
let slots = Slots(10)

/// One job for each length of data that tells the cases apart: not begun at all, nothing yet, one byte, the
/// edges of a page, all but one byte, all, and one byte too many.
let lengths: [Int?] = [nil, 0, 1, 4095, 4096, n - 1, n, n + 1]

/// Runs one behaviour against jobs of all lengths, in one spool and by one `spoolrun --once`, and judges what is left.
func check(_ behaviour: Behaviour) async throws {
  try await slots.withSlot {
    for play in 1...5 {
      let server = try ScriptedServer(behaviour.script)
      if try await check(behaviour, server, isLast: play == 5) { return }
    }
  }
}

/// Whether the machine stood still: a job had the second look after a first mismatch, which comes after 4 s, in this
/// run; or its own time-out of seconds was over in a connect, or although the server never stalls.
private func hasStoodStill(_ behaviour: Behaviour, _ spool: TemporarySpool) -> Bool {
  let isMismatch = spool.names("failed").contains { name in
    guard !name.hasSuffix(".part"), let failure = try? spool.lastFailure("failed/\(name)") else { return false }
    return failure["code"] == "mismatch"
  }
  if isMismatch { return true }
  guard behaviour.lines.contains(where: { $0.hasPrefix("timeout: ") }) else { return false }
  var codes: Set<String> = ["connect"]
  if case .done = behaviour.outcomes.empty { codes.insert("stalled") }
  return spool.names("partial").contains { name in
    guard !name.hasSuffix(".part"), let failure = try? spool.lastFailure("partial/\(name)") else { return false }
    return codes.contains(failure["code"] ?? "")
  }
}

/// - Returns: false, without a judgement, where the machine stood still, but in the last play.
private func check(_ behaviour: Behaviour, _ server: ScriptedServer, isLast: Bool) async throws -> Bool {
  let spool = try TemporarySpool()
  for length in lengths {
    let name = jobName(length)
    let job = jobText(behaviour, url: server.url("/\(name)"))
    if let length {
      try spool.addPartial(name, job: job, facts: behaviour.facts, part: behaviour.data(length))
    } else {
      try spool.drop(name, job)
    }
  }
  let result = try await spoolrun(["run", "--once", "--jobs", "8", "--per-host", "8", spool.root])
  server.stop()
  if !isLast, hasStoodStill(behaviour, spool) { return false }
  let judge = Judge(behaviour: behaviour, spool: spool, server: server)
  for length in lengths { try judge.job(length) }
  judge.everything(result)
  return true
}

private func jobName(_ length: Int?) -> String {
  length.map { "at-\($0)" } ?? "fresh"
}

func jobText(_ behaviour: Behaviour, url: String) -> String {
  var lines = ["url: \(url)"]
  if behaviour.declares.contains(.size) { lines.append("size: \(behaviour.final.count)") }
  if behaviour.declares.contains(.checksum) { lines.append("crc32: \(hex8(independentCRC32(behaviour.final)))") }
  return (lines + behaviour.lines).map { "\($0)\n" }.joined()
}

extension Behaviour {
  /// The data of a job that has `length` bytes; one too many is a byte that no version has there.
  func data(_ length: Int) -> [UInt8] {
    Array(holds.prefix(length)) + Array(repeating: 0, count: max(0, length - holds.count))
  }

  func outcome(_ length: Int) -> Outcome {
    switch length {
    case 0: outcomes.empty
    case n: outcomes.full
    case n...: outcomes.over
    default: outcomes.middle
    }
  }
}

/// Compares what is left with what must be.
private struct Judge {
  let behaviour: Behaviour
  let spool: TemporarySpool
  let server: ScriptedServer

  func complaint(_ length: Int?, _ what: String) -> Comment {
    let requests = server.requests(for: "/\(jobName(length))").map(ask)
    return """
      \(behaviour.name), \(jobName(length)): \(what)
      requests: \(requests)
      \(spool.listing(of: jobName(length)))
      """
  }

  func job(_ length: Int?) throws {
    let name = jobName(length)
    let places = spool.places(of: name)
    #expect(places.count == 1, complaint(length, "one job, one place; found in \(places)"))
    let asked = server.requests(for: "/\(name)").map(ask)
    // Its server rests because of another job here.
    if asked.isEmpty, !spool.names("servers").allSatisfy({ $0.hasPrefix(".") }), places != ["done/\(name)"] {
      #expect(places == [length == nil ? "new/\(name)" : "partial/\(name)"], complaint(length, "it has not begun"))
      #expect(try spool.payload(name) == nil, complaint(length, "a payload without a request"))
      return
    }
    try requests(length, asked)

    // Whole by its journal or its job, and contradicted by neither: done without asking again, with the version it is.
    let knowsSize = behaviour.facts.size == n || behaviour.declares.contains(.size)
    let isRight = behaviour.holds == behaviour.final || !behaviour.declares.contains(.checksum)
    let isWhole = length == n && asked.isEmpty && knowsSize && isRight
    let whole = isWhole ? behaviour.holds : behaviour.final
    let problem = try problem(length, isWhole ? .done : behaviour.outcome(length ?? 0), whole)
    #expect(problem == nil, complaint(length, problem ?? ""))

    // Zero wrong: whatever else holds.
    let published = try spool.payload(name)
    let isDone = places == ["done/\(name)"]
    #expect((published != nil) == isDone, complaint(length, "a payload in place and a job in done/ go together"))
    if published != nil {
      #expect(digest(published) == digest(whole), complaint(length, "WRONG BYTES published"))
    }
  }

  private func requests(_ length: Int?, _ asked: [String]) throws {
    guard let first = asked.first else {
      #expect(length == n, complaint(length, "no request"))
      return
    }
    switch length ?? 0 {
    case 0: #expect(first == "plain", complaint(length, "nothing to resume, but asked \(first)"))
    case 1..<n:
      let k = length ?? 0
      if let asks = behaviour.asks { #expect(asked == asks(k), complaint(length, "expected \(asks(k))")) }
      let condition = behaviour.facts.isIfRangeIgnored ? nil : behaviour.facts.validator
      let hasChecks = behaviour.declares.contains(.checksum) || behaviour.facts.validator != nil
      let expected = hasChecks ? "range \(k)" + (condition.map { " if \($0)" } ?? "") : "plain"
      #expect(first == expected, complaint(length, "expected first \(expected)"))
    default: break
    }
  }

  /// nil if the job ended as expected.
  private func problem(_ length: Int?, _ expected: Outcome, _ whole: [UInt8]) throws -> String? {
    let name = jobName(length)
    switch expected {
    case .either(let one, let other):
      guard let problem = try problem(length, one, whole) else { return nil }
      return try self.problem(length, other, whole).map { "\(problem); nor: \($0)" }
    case .done:
      guard spool.places(of: name) == ["done/\(name)"] else { return "expected in done/" }
      let lines = try spool.lines("done/\(name)")
      guard let receipt = lines.last(where: { $0.key == "done" }), receipt["output"] == name,
        let verified = lines.last(where: { $0.key == "verified" }), verified["size"] == "\(whole.count)",
        verified["crc32"] == hex8(independentCRC32(whole))
      else { return "expected a receipt with the payload's size and CRC-32" }
      return fileStatus(spool.path("partial/\(name).part")) == nil ? nil : "data left in partial/"
    case .waits(let code):
      guard spool.places(of: name) == ["partial/\(name)"] else { return "expected in partial/" }
      let failure = try spool.lines("partial/\(name)").last { $0.key == "failed" }
      guard let failure, failure["class"] == "temporary", failure["code"] == code else {
        return "expected a temporary failure \(code)"
      }
      guard let failed = failure.words.first.flatMap({ secondsSinceEpoch(rfc3339: $0) }),
        let retry = failure["retry"].flatMap({ secondsSinceEpoch(rfc3339: $0) })
      else { return "no time of the failure, or no retry= time" }
      // A server that is busy, or fails for several paths, rests, and its jobs with it.
      let isServers =
        ["http-408", "http-429", "connect", "resolve"].contains(code) || code.hasPrefix("http-") && code >= "http-5"
      // A first mismatch is looked at again soon.
      let expected = code.hasPrefix("mismatch-") ? 4...6 : behaviour.retry
      let earliest = isServers ? 1 : expected.lowerBound
      guard (earliest...expected.upperBound).contains(retry - failed) else {
        return "next attempt after \(retry - failed) s, expected \(expected)"
      }
      let modified = fileStatus(spool.path("partial/\(name)"))?.st_mtim.tv_sec ?? 0
      guard abs(modified - retry) <= 1 else { return "mtime \(modified) doesn't repeat retry=\(retry)" }
      return try dataProblem(length)
    case .givenUp(let code):
      guard spool.places(of: name) == ["failed/\(name)"] else { return "expected in failed/" }
      let failure = try spool.lines("failed/\(name)").last { $0.key == "failed" }
      guard let failure, failure["class"] == "permanent", failure["code"] == code, failure["retry"] == nil else {
        return "expected a permanent failure \(code)"
      }
      return try dataProblem(length)
    }
  }

  /// The data of a job that is not done: what was there, or more, or the beginning of the payload; never a splice.
  private func dataProblem(_ length: Int?) throws -> String? {
    let path = spool.path("partial/\(jobName(length)).part")
    let data = fileStatus(path) == nil ? [] : try readFile(path)
    let initial = behaviour.data(length ?? 0)
    guard data == initial || data == Array(behaviour.final.prefix(data.count)) else { return "DATA SPLICED" }
    guard behaviour.keepsData, (length ?? 0) < n else { return nil }
    return data.count >= initial.count ? nil : "\(initial.count) bytes of data became \(data.count)"
  }

  /// What holds for the run as a whole.
  func everything(_ result: CommandResult) {
    #expect(server.problems == [], "\(behaviour.name)")
    let states = lengths.map { spool.places(of: jobName($0)).first?.split(separator: "/").first ?? "" }
    let status: Int32 = states.contains("failed") ? 1 : states.contains("partial") ? 75 : 0
    #expect(result.status == .exited(status), "\(behaviour.name): \(result)")
    let done = spool.names("done")
    #expect(spool.payloads == done, "\(behaviour.name): exactly the done jobs' payloads stand in files/")
    for request in server.requests {
      #expect(isLawful(request), "\(behaviour.name): \(request.fields)")
    }
  }
}

/// What no request may lack or have, whatever the case.
func isLawful(_ request: ServerRequest) -> Bool {
  let range = request.values("range")
  let condition = request.values("if-range")
  return request.method == "GET" && request.values("accept-encoding") == ["identity"]
    && request.values("cookie").isEmpty && (range.isEmpty || range.count == 1 && request.rangeStart != nil)
    && (condition.isEmpty || range.count == 1 && condition.count == 1 && !condition[0].hasPrefix("W/"))
}

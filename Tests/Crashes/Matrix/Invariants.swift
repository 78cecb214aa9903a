import Glibc
import TestSupport

/// What must hold whenever no worker runs.
struct Invariants {
  let scenario: Scenario
  let world: World

  private var spool: TemporarySpool { world.spool }

  /// Problems that a spool may never show, whatever died or failed.
  func always() throws -> [String] {
    let files = try JobFile.all(in: spool)
    var problems: [String] = []
    for job in scenario.jobs {
      let own = files.filter { $0.output == job.output }
      // A move by link and unlink, cut in between, can be completed: both names are one file's.
      let isHalfMoved = own.count == 2 && Set(own.map(\.inode)).count == 1
      let isToCome = own.isEmpty && job.isOrdered && world.hasUncheckedOrder
      if own.count != 1, !isHalfMoved, !isToCome {
        problems.append("\(job.output): its job stands in \(own.map(\.place))")
      }
      problems += try payloadProblems(job, isDone: own.contains { $0.state == "done" })
      for file in own where file.state == "done" { problems += receiptProblems(job, file) }
    }
    if scenario.delivers { problems += try world.wrongDeliveries().map { "delivered what is no payload: \($0)" } }
    let outputs = scenario.jobs.map(\.output)
    problems += filesBelow(world.payloadRoot).filter { !outputs.contains($0) }.map {
      "a payload that nobody asked for: \($0)"
    }
    return problems
  }

  private func payloadProblems(_ job: Scenario.Job, isDone: Bool) throws -> [String] {
    let path = "\(world.payloadRoot)/\(job.output)"
    guard let status = fileStatus(path) else {
      return isDone || job.before != nil ? ["\(job.output): no payload"] : []
    }
    let bytes = try readFile(path)
    let isRight = bytes == Version.current.bytes && job.end == .done
    if isRight, let permissions = scenario.permissions, status.st_mode & 0o7777 != permissions {
      return ["\(job.output): its permissions are \(String(status.st_mode & 0o7777, radix: 8))"]
    }
    if isRight || (!isDone && bytes == job.before) { return [] }
    return ["\(job.output): a wrong payload of \(bytes.count) bytes, crc32 \(hex8(independentCRC32(bytes)))"]
  }

  private func receiptProblems(_ job: Scenario.Job, _ file: JobFile) -> [String] {
    guard job.end == .done else { return ["\(file.place): not to be done"] }
    let verified = file.last("verified")
    let done = file.last("done")
    let hasDigests = scenario.digests.allSatisfy { verified?[$0.key] == $0.value }
    let isDelivered = scenario.delivers && world.isDelivered(job.output)
    let isRight =
      hasDigests && (done?["delivered"] != nil) == scenario.delivers && isDelivered == scenario.delivers
      && verified?["size"] == "\(Version.length)" && verified?["crc32"] == Version.current.crc32
      && done?["output"] == job.output
      && done?["directory"] == world.outputRoot
    return isRight ? [] : ["\(file.place): the receipt is wrong: \(verified?.text ?? "none") | \(done?.text ?? "none")"]
  }

  /// Problems of a spool in which all has come to its end.
  func atEnd(after faults: [Fault]) throws -> [String] {
    var problems = try always()
    let files = try JobFile.all(in: spool)
    let hadError = faults.contains(where: \.isError)
    for job in scenario.jobs {
      let places = files.filter { $0.output == job.output }.map(\.state)
      let wanted = job.end == .done ? "done" : "failed"
      if places != [wanted] { problems.append("\(job.output): in \(places), not in \(wanted)") }
    }
    for state in ["new", "urgent", "cur", "partial"] {
      problems += names(in: spool.path(state), isHiddenToo: true).map { "left behind: \(state)/\($0)" }
    }
    let failed = files.filter { $0.state == "failed" }.map(\.entry) + scenario.rejected
    // What an error kept from being removed is left to the sweep.
    let swept = { (name: String) in hadError && name.hasSuffix(".part") }
    problems += names(in: spool.path("failed"), isHiddenToo: true).filter { !failed.contains($0) && !swept($0) }.map {
      "left behind: failed/\($0)"
    }
    problems += scenario.rejected.filter { fileStatus(spool.path("failed/\($0)")) == nil }.map {
      "not there: failed/\($0)"
    }
    problems += temporaryProblems(faults, hadError)
    problems += orderProblems()
    return problems
  }

  /// A standing order is back in its place, and its list was fetched no more often than a fault explains.
  private func orderProblems() -> [String] {
    guard scenario.jobs.contains(where: \.isOrdered) else { return [] }
    let orders = names(in: spool.path("standing"))
    return (orders == ["order"] ? [] : ["standing/ has \(orders)"])
      + (world.hasUncheckedOrder ? ["standing/order was not checked"] : [])
  }

  private func temporaryProblems(_ faults: [Fault], _ hadError: Bool) -> [String] {
    let wasKilled = faults.contains(where: \.isKill)
    // tmp/ is swept of what workers leave there, which bears their names (spool.5).
    let temporary = names(in: spool.path("tmp"), isHiddenToo: true).filter {
      !(hadError || wasKilled) || !$0.contains(":")
    }
    // Documented for the case that the data got a new inode, as after a failed fsync.
    let hidden = names(in: world.payloadRoot, isHiddenToo: true).filter {
      $0.hasPrefix(".") && !(hadError && $0.hasPrefix(".spoolrun-"))
    }
    return temporary.map { "left behind: tmp/\($0)" } + hidden.map { "left behind in the output root: \($0)" }
  }
}

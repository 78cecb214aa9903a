import Glibc
import TestSupport

/// Standing orders: between the list, the jobs that come of it, and the record of them.
extension Scenario {
  static let standing = [
    Scenario(
      name: "standing order", jobs: [Job(output: "a.bin", isOrdered: true), Job(output: "b.bin", isOrdered: true)],
      stride: 3, isNamedByOutput: false, setUp: { try $0.order() },
      answer: { world, request, reply in try world.answerOrder(request, reply) }),
    Scenario(
      name: "subscription to a file",
      jobs: [Job(output: "a.bin", before: Version.previous.bytes, isOrdered: true)], stride: 3,
      isWatched: true, isNamedByOutput: false, setUp: { try $0.orderFile() },
      answer: { _, request, reply in try Version.current.serve(request, reply) }),
    Scenario(
      // Both look at the order; one of them fetches the list.
      name: "standing order, two workers",
      jobs: [Job(output: "a.bin", isOrdered: true), Job(output: "b.bin", isOrdered: true)],
      workers: 2, stride: 5,
      isNamedByOutput: false, setUp: { try $0.order() },
      answer: { world, request, reply in try world.answerOrder(request, reply) }),
  ]
}

extension World {
  fileprivate func order() throws {
    guard mkdir(spool.path("standing"), 0o700) == 0 else { throw TestSupportError("mkdir standing") }
    try writeFile(spool.path("standing/order"), Array("url: \(base)/list\nevery: 300d\nfirst: all\n".utf8))
    try makeOrderDue()
  }

  /// An order to replace the last version of a file.
  fileprivate func orderFile() throws {
    guard mkdir(spool.path("standing"), 0o700) == 0 else { throw TestSupportError("mkdir standing") }
    let text = "url: \(base)/a.bin\nevery: 300d\nentries: file\n"
    try writeFile(spool.path("files/a.bin"), Version.previous.bytes)
    try writeFile(spool.path("standing/order"), Array(text.utf8))
    try makeOrderDue()
  }

  /// The list, and what it names.
  fileprivate func answerOrder(_ request: ServerRequest, _ reply: Reply) throws {
    guard request.target == "/list" else { return try Version.current.serve(request, reply) }
    let names = ["a.bin", "b.bin"]
    try reply.respond("200 OK", ["ETag: \"1\""], body: Array((names.map { "\(base)/\($0)\n" }.joined()).utf8))
  }

  /// Whether the standing order is there and was never checked.
  var hasUncheckedOrder: Bool {
    ["standing", "cur"].contains { state in
      spool.names(state).filter { $0 == "order" || $0.hasPrefix("order:") }.contains { name in
        // It may move under our hands.
        guard let text = try? readFile(spool.path("\(state)/\(name)")) else { return false }
        return !String(decoding: text, as: UTF8.self).contains("\nchecked: ")
      }
    }
  }

  func makeOrderDue() throws {
    guard spool.names("standing").contains("order") else { return }
    try setModificationTime(spool.path("standing/order"), secondsFromNow: -60)
  }
}

internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Transfer

/// Compares the files that gets have fetched into a directory with what was noted, where their spools are gone. On any
/// thread.
struct FetchedFiles: Sendable {
  /// Where the files are now; nil for where they were fetched to.
  let directory: String?
  let isVerbose: Bool
  /// Whether what is wrong is fetched again.
  let refetches: Bool
  let progress: VerifyProgress

  private let here = (try? realPath(".")) ?? ""

  func answer(_ fetched: GetRecords.Fetched) -> VerifyAnswer {
    let receipt = fetched.done.receipt
    let isHere = receipt.directory?.exact == here.exact
    let path = isHere ? receipt.output : "\(receipt.directory ?? "")/\(receipt.output)"
    let name = escaped(path)
    let check: PayloadCheck
    do throws(SpoolError) {
      check = try progress.following(fetched.done) { (note) throws(SpoolError) in
        try GetRecords.check(fetched, in: directory, note: note)
      }
    } catch {
      return VerifyAnswer(isGood: false, line: "\(name): cannot be checked: \(error)")
    }
    let flaw: String
    switch check {
    case .missing where receipt.isDelivered && directory == nil:
      return VerifyAnswer(isDelivered: true, line: isVerbose ? "\(name): delivered" : nil)
    case .missing:
      flaw =
        directory != nil || refetches
        ? "missing" : "missing; `spoolrun clean` in \(escaped(receipt.directory ?? "")) forgets it"
    case .changed(let mismatch): flaw = "changed: \(mismatch.text)"
    case .unreadable(let error): flaw = "unreadable: \(error.errno)"
    case .present, .sound:
      return VerifyAnswer(place: receipt.directory, line: isVerbose ? "\(name): sound: \(fetched.facts)" : nil)
    }
    var answer = VerifyAnswer(isGood: false, line: "\(name): \(flaw)")
    if case .missing = check {} else { answer.place = receipt.directory }
    if !fetched.isOfSpool, let lost = fetched.lost {
      let digest = DigestAlgorithm.byStrength.lazy.compactMap { fetched.done.verified.digests[$0] }.first
      let proof = digest.map { " --\($0.algorithm.rawValue) \($0)" } ?? ""
      answer.line? += "; \(lost): `spoolrun get --overwrite\(proof) -o \(ShellWords.quoted(path)) URL` gets it again"
    } else if directory == nil {
      (answer.isDamaged, answer.again) = (true, fetched)
    }
    return answer
  }

  /// Gets files again, as they were: nothing else takes their places.
  static func refetch(_ files: [GetRecords.Fetched]) throws {
    let location = try PersonalSpool.become(ownerOf: nil)
    try Libcurl.loadOrExit()
    let get = try Get.parse([])
    var ends: [ExitStatus] = []
    let directories = Dictionary(grouping: files, by: \.directory)
    for (directory, files) in directories.sorted(by: { $0.key.text < $1.key.text }) where StopSignals.last == 0 {
      let items = try files.map { file in
        let urls = [file.asked, file.isOfSpool || file.asked?.exact == file.url?.exact ? nil : file.url]
        var asked = try JobRequest(urls: urls.compactMap(\.self), given: [])
        (asked.overwrite, asked.expected) = (true, file.done.verified.expectation)
        let name = file.done.receipt.output
        if let status = fileStatus(at: "\(directory.text)/\(name)") {
          asked.mode = PayloadMode(String(status.st_mode & 0o777, radix: 8))
        }
        return GetItem(
          asked: asked, directory: directory.text, name: name, shown: name, known: JobName(file.job),
          again: file.done.verified)
      }
      do {
        ends.append(try get.fetch(items, location))
        if ends.last == .success { for item in items { Terminal.print("\(escaped(item.shown)): fetched again") } }
      } catch let status as ExitCode {
        ends.append(ExitStatus(rawValue: status.rawValue) ?? .givenUp)
      }
    }
    if ends.count < directories.count {
      Terminal.error("stopped; the same command goes on with the other directories")
      ends.append(.waiting)
    }
    let bad = ends.filter { $0 != .success }
    if let worst = bad.first(where: { $0 == .givenUp }) ?? bad.first { throw worst.code }
  }
}

extension GetRecords.Fetched {
  var directory: ExactText { (done.receipt.directory ?? "").exact }

  /// Why nobody can ask for it again by what was noted; nil if that may do.
  fileprivate var lost: String? {
    guard let asked else { return "its URL is not noted" }
    return lacks.map { "what may be secret is not noted of its request, \(escaped(asked)) (\(escaped($0)))" }
  }

  fileprivate var facts: String { "size=\(done.verified.size) \(Fields().with(done.verified.digests).text)" }

  /// Where the file is from, for a person.
  var story: String {
    let time = done.time.map { " \($0)" } ?? ""
    let place = url.map { " from \(escaped($0))" } ?? ""
    return "\(escaped(done.receipt.output)): fetched\(time)\(place); \(facts)"
  }
}

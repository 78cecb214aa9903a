internal import Spool
internal import Transfer

/// The jobs that a standing order makes of new entries. Pure but for the question which files exist.
struct OrderJobs {
  /// The order's own keys, without those of `defaults`, which its jobs inherit by themselves.
  private let request: JobRequest
  private let name: JobName
  private let shared: SharedNames
  private let hosts: [String]

  /// - Parameter hosts: the hosts of the order's own URLs.
  init(_ request: JobRequest, as name: JobName, _ shared: SharedNames, hosts: [String]) {
    self.request = request
    self.name = name
    self.shared = shared
    self.hosts = hosts.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// The job that fetches a file.
  /// - Parameters:
  ///   - exists: whether there is a file of this path below the output root.
  func job(for file: OfferedFile, exists: (String) -> Bool) -> (text: String, name: JobName) {
    var job = request
    job.standing = StandingOrder()
    job.urls = file.urls.map { .init(text: $0, number: 0) }
    job.expected = file.expected
    if file.replaces { job.overwrite = job.overwrite ?? true }
    job.output = .init(text: output(file, mayReplace: job.overwrite == true, exists), number: 0)
    job.headers = boundHeaders
    return (job.text, Self.name(of: name, file.key))
  }

  /// The name of the job for an entry.
  static func name(of order: JobName, _ key: String) -> JobName { JobName(like: order.display, suffix: "-\(key)") }

  /// Where a file goes if nothing else is there.
  static func path(of file: OfferedFile, _ request: JobRequest) -> String {
    (request.output?.text ?? "") + file.name
  }

  /// The path of the payload: the file's name below the order's directory. If another entry or file has it, the entry's
  /// key makes it another one. A path that the list states with a digest is kept: it is the same file, or a new
  /// version.
  private func output(_ file: OfferedFile, mayReplace: Bool, _ exists: (String) -> Bool) -> String {
    let path = Self.path(of: file, request)
    if mayReplace || file.expected.provesContent { return path }
    return shared.contains(file.name) || exists(path) ? PayloadName.marked(path, with: file.key) : path
  }

  /// The list says which hosts its files are on. The order's header fields are for the list's own host.
  private var boundHeaders: [HeaderLine] {
    request.headers.flatMap { line in
      line.host != nil ? [line] : hosts.compactMap { line.bound(to: $0) }
    }
  }
}

/// The names that several entries of a list have.
struct SharedNames: Sendable {
  private var names: Set<ExactText> = []

  /// - Parameter entries: all of the list, whether or not they are new.
  init(_ entries: [FeedEntry], from lists: [URLParts]) {
    var owners: [ExactText: String] = [:]
    for entry in entries {
      guard let file = try? OfferedFile(entry, from: lists) else { continue }
      // Of the alternatives of one entry, only one is fetched.
      if let other = owners.updateValue(file.key, forKey: file.name.exact), other != file.key {
        names.insert(file.name.exact)
      }
    }
  }

  func contains(_ name: String) -> Bool { names.contains(name.exact) }
}

internal import Spool
internal import Transfer

/// The jobs that a standing order makes of new entries. Pure but for the question which files exist.
struct OrderJobs {
  /// The order's own keys, without those of `defaults`, which its jobs inherit by themselves.
  private let request: JobRequest
  private let name: JobName
  /// Names that several entries of the list have.
  private let shared: Set<ExactText>
  private let hosts: [String]

  /// - Parameters:
  ///   - files: all files of the list, whether or not they are new.
  ///   - hosts: the hosts of the order's own URLs.
  init(_ request: JobRequest, as name: JobName, among files: [OfferedFile], hosts: [String]) {
    self.request = request
    self.name = name
    self.hosts = hosts.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    var owners: [ExactText: String] = [:]
    var shared: Set<ExactText> = []
    // Of the alternatives of one entry, only one is fetched.
    for file in files {
      if let other = owners.updateValue(file.key, forKey: file.name.exact), other != file.key {
        shared.insert(file.name.exact)
      }
    }
    self.shared = shared
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
    return (job.text, JobName(like: name.display, suffix: "-\(file.key)"))
  }

  /// The path of the payload: the file's name below the order's directory. If another entry or file has it, the entry's
  /// key makes it another one. A path that the list states with a digest is kept: it is the same file, or a new
  /// version.
  private func output(_ file: OfferedFile, mayReplace: Bool, _ exists: (String) -> Bool) -> String {
    let path = (request.output?.text ?? "") + file.name
    if mayReplace || file.expected.provesContent { return path }
    return shared.contains(file.name.exact) || exists(path) ? PayloadName.marked(path, with: file.key) : path
  }

  /// The list says which hosts its files are on. The order's header fields are for the list's own host.
  private var boundHeaders: [HeaderLine] {
    request.headers.flatMap { line in
      line.host != nil ? [line] : hosts.compactMap { line.bound(to: $0) }
    }
  }
}

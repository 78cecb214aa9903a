internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SystemPackage
internal import Transfer

/// What the command line of `get` asks for.
struct GetPlan {
  let urls: [String]
  let output: String?
  let given: [(key: JobKey, text: String)]

  /// - Throws: the exit status, after a message.
  func items() throws -> [GetItem] {
    try Libcurl.loadOrExit()
    let place = GetPlace(output) { path in
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
    var names: [String] = []
    for url in urls {
      let parts: URLParts
      do throws(URLProblem) { parts = try URLParts(url) } catch { throw refusal("url: \(error.reason)") }
      guard let name = place.name ?? parts.lastPathSegment else {
        throw refusal("the URL does not end in a file name: use --output FILE")
      }
      names.append(name)
    }
    let groups: [(name: String, urls: [String])]
    if let name = place.name {
      groups = [(name, urls)]
    } else {
      let distinct = PayloadName.distinct(zip(names, urls).map { (name: $0, url: $1) })
      var seen: Set<String> = []
      groups = zip(distinct, urls).filter { seen.insert($0.0).inserted }.map { ($0, [$1]) }
    }
    let perFile = given.first { $0.key.isPerJob }
    if groups.count > 1, let perFile { throw refusal("--\(perFile.key.name) is for one file: get each by itself") }
    let directory = try absolute(place.directory)
    return groups.map { GetItem(urls: $0.urls, directory: directory, name: $0.name, shown: place.shown($0.name)) }
  }

  /// The real path of a directory, made when it is missing: then no link on the way can lead a payload elsewhere.
  private func absolute(_ directory: String) throws -> String {
    for slash in directory.indices.dropFirst() where directory[slash] == "/" {
      _ = mkdir(String(directory[..<slash]), 0o777)
    }
    _ = mkdir(directory, 0o777)
    guard let real = realpath(directory, nil) else {
      Terminal.error("\(escaped(directory)): \(Errno(rawValue: Glibc.errno))")
      throw ExitStatus.cannotCreate.code
    }
    defer { free(real) }
    guard let path = String(validatingCString: real) else {
      Terminal.error("\(escaped(directory)): the path of the directory is not UTF-8")
      throw ExitStatus.cannotCreate.code
    }
    return path
  }

  /// The job's request, checked by the reader that a worker uses.
  func checked(_ item: GetItem) throws -> JobRequest {
    if given.contains(where: { $0.text.utf8.contains { $0 == 0x0A || $0 == 0x0D } }) {
      throw refusal("no value may contain a line break")
    }
    do throws(Defect) {
      let request = try item.request(given)
      let parsed = Array(request.text.utf8).withUnsafeBytes { JobText($0) }
      if let defect = parsed.defect { throw defect }
      return parsed.request
    } catch {
      throw refusal(error.reason)
    }
  }

  private func refusal(_ reason: String) -> any Error {
    Terminal.error("\(reason); see `spoolrun get --help`")
    return ExitStatus.usage.code
  }
}
